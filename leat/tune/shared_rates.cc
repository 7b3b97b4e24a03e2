#include "leat/tune/shared_rates.h"

#include <algorithm>
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

/// Reduces `rates` as if each of several resources were divided by demand.
/// `needs`: of a sample of each claim; `all`: the amounts that there are.
void divide_by_demand(const std::vector<PackedAmounts>& needs,
                      const PackedAmounts& all, std::vector<double>& rates) {
  PackedAmounts levels(all.size(), kUnbounded);
  const auto rate_of = [&](std::size_t i, std::size_t without) {
    double rate = rates[i];
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (r == without || needs[i][r] <= 0) continue;
      rate = std::min(rate, levels[r] / needs[i][r]);
    }
    return rate;
  };
  // The level of each resource only falls as long as others hold demand back
  // less than it does; a few rounds settle it.
  for (int round = 0; round < 12; ++round) {
    const PackedAmounts before = levels;
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::vector<double> demands;
      for (std::size_t i = 0; i < rates.size(); ++i) {
        demands.push_back(needs[i][r] > 0 ? rate_of(i, r) * needs[i][r] : 0);
      }
      levels[r] = level_of(std::move(demands), all[r]);
    }
    if (levels == before) break;
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] = rate_of(i, all.size());
  }
}

void share_bandwidth(const NodeResources& node,
                     const std::vector<Claim>& claims,
                     const std::vector<Grant>& grants,
                     std::vector<double>& rates) {
  std::vector<PackedAmounts> needs;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const PackedAmounts all =
        needed_amounts(node, claims[i], grants[i].cache_bytes);
    needs.emplace_back(all.begin() + kFirstLinkRow, all.end());
  }
  divide_by_demand(needs, links_of(node), rates);
}

}  // namespace

std::vector<double> rates_by_demand(const NodeResources& node,
                                    const std::vector<Claim>& claims) {
  PackedAmounts all = shared_amounts(node);
  all[kThreadRow] = std::floor(node.threads);
  std::vector<PackedAmounts> needs;
  std::vector<double> rates;
  for (const Claim& claim : claims) {
    const double cache = node.cache_bytes / static_cast<double>(claims.size());
    needs.push_back(needed_amounts(node, claim, cache));
    rates.push_back(claim.speed.compute_ceiling);
  }
  divide_by_demand(needs, all, rates);
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
    clipped[i].buckets.clear();
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
