#include "leat/tune/shared_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "leat/tune/cache_dealing.h"
#include "leat/tune/rate_problem.h"

namespace leat {
namespace {

/// The most that each demand may have for all to fit into `all`.
double level_of(std::vector<double> demands, double all) {
  std::sort(demands.begin(), demands.end());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const double equal = all / static_cast<double>(demands.size() - i);
    if (demands[i] > equal) return equal;
    all -= demands[i];
  }
  return kUnbounded;
}

void share_bandwidth(const NodeResources& node,
                     const std::vector<Claim>& claims,
                     const std::vector<Grant>& grants,
                     std::vector<double>& rates) {
  std::vector<double> bytes;
  std::vector<double> demands;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const JobSpeed& speed = claims[i].speed;
    bytes.push_back(speed.read_bytes_per_sample *
                    missed_part(speed, grants[i].cache_bytes));
    demands.push_back(bytes[i] > 0 ? rates[i] * bytes[i] : 0);
  }
  const double level = level_of(std::move(demands), node.bytes_per_second);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (bytes[i] > 0) rates[i] = std::min(rates[i], level / bytes[i]);
  }
}

}  // namespace

std::vector<double> rates_by_demand(const NodeResources& node,
                                    const std::vector<Claim>& claims) {
  const auto count = static_cast<double>(claims.size());
  const std::array<double, 3> all = {std::floor(node.threads), node.in_flight,
                                     node.bytes_per_second};
  std::vector<std::array<double, 3>> needs;
  for (const Claim& claim : claims) {
    const JobSpeed& speed = claim.speed;
    const double cache = node.cache_bytes / count;
    const double missed = missed_part(speed, cache);
    needs.push_back({seconds_per_sample(speed, cache),
                     speed.latency_seconds * speed.reads_per_sample * missed,
                     speed.read_bytes_per_sample * missed});
  }
  // The level of each resource only falls as long as others hold demand back
  // less than it does; a few rounds settle it.
  std::array<double, 3> levels;
  levels.fill(kUnbounded);
  std::vector<double> rates(claims.size());
  for (int round = 0; round < 12; ++round) {
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::vector<double> demands;
      for (std::size_t i = 0; i < claims.size(); ++i) {
        double rate = claims[i].speed.compute_ceiling;
        for (std::size_t other = 0; other < all.size(); ++other) {
          if (other == r || needs[i][other] <= 0) continue;
          rate = std::min(rate, levels[other] / needs[i][other]);
        }
        demands.push_back(needs[i][r] > 0 ? rate * needs[i][r] : 0);
      }
      levels[r] = level_of(std::move(demands), all[r]);
    }
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    rates[i] = claims[i].speed.compute_ceiling;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (needs[i][r] > 0)
        rates[i] = std::min(rates[i], levels[r] / needs[i][r]);
    }
  }
  return rates;
}

std::vector<double> rates_of(const NodeResources& node,
                             const std::vector<Claim>& claims,
                             const std::vector<Grant>& grants) {
  const auto seconds_of = [&](std::size_t i) {
    return seconds_per_sample(claims[i].speed, grants[i].cache_bytes);
  };
  std::vector<double> rates;
  double used = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    rates.push_back(predict(claims[i].speed, grants[i]).rate);
    used += rates[i] * seconds_of(i);
  }
  for (std::size_t i = 0; used > node.threads && i < claims.size(); ++i) {
    Grant less = grants[i];
    less.threads =
        std::min(less.threads, rates[i] * seconds_of(i)) * node.threads / used;
    rates[i] = std::min(rates[i], predict(claims[i].speed, less).rate);
  }
  share_bandwidth(node, claims, grants, rates);
  return rates;
}

std::vector<Grant> workers_only(const NodeResources& node,
                                const std::vector<Claim>& claims) {
  std::vector<Grant> even = even_split(node, claims);
  std::vector<Claim> clipped = claims;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Grant reads = even[i];
    reads.threads = kUnbounded;
    clipped[i].speed.compute_ceiling = predict(claims[i].speed, reads).rate;
    clipped[i].speed.rate_per_thread =
        1 / seconds_per_sample(claims[i].speed, even[i].cache_bytes);
    clipped[i].speed.saved_seconds = 0;
    clipped[i].speed.reads_per_sample = 0;
    clipped[i].speed.read_bytes_per_sample = 0;
  }
  const std::vector<Grant> threads =
      allocate({.threads = node.threads}, clipped, {Objective::kThroughput, 0});
  for (std::size_t i = 0; i < even.size(); ++i) {
    even[i].threads = threads[i].threads;
  }
  return even;
}

std::vector<double> split_rates(const NodeResources& node,
                                const std::vector<Claim>& claims,
                                const AllocationOptions& options) {
  const RateProblem jobs(node, claims, options);
  const Amounts cache = best_cache(jobs, {});
  std::vector<double> rates = jobs.rates_with(cache, {});
  double used = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    used += rates[i] * jobs.seconds_of(i, cache[i]);
  }
  // As shares have it, there is a thread for each.
  for (std::size_t i = 0; used > node.threads && i < rates.size(); ++i) {
    if (std::isfinite(claims[i].speed.rate_per_thread)) {
      rates[i] *= node.threads / used;
    }
  }
  return rates;
}

}  // namespace leat
