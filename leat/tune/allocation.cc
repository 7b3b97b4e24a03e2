// The search for shares: rates by rate_problem.h, with the cache of
// cache_dealing.h and the threads of thread_dealing.h; then whole requests, and
// the rest to all.

#include "leat/tune/allocation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "leat/tune/cache_dealing.h"
#include "leat/tune/rate_problem.h"
#include "leat/tune/thread_dealing.h"

namespace leat {
namespace {

// A share of the floor: figures move by that from report to report.
constexpr double kFloorSlack = 0.1;
// The slack on promises where shares are made: for rounding, and one request.
constexpr double kNumericSlack = 1e-6;
constexpr double kMissingRequests = 1;

/// Equal parts, but to nobody more than there is room for.
std::vector<double> even_parts(double of, std::span<const double> room) {
  std::vector<std::size_t> order(room.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return room[a] < room[b]; });
  std::vector<double> parts(room.size(), 0);
  for (std::size_t done = 0; done < order.size(); ++done) {
    const double each = of / static_cast<double>(order.size() - done);
    parts[order[done]] = std::clamp(room[order[done]], 0.0, each);
    of -= parts[order[done]];
  }
  return parts;
}

/// An equal part of each link for all that read through it.
std::vector<double> even_bandwidths(std::span<const double> links,
                                    std::span<const Claim* const> claims) {
  std::vector<double> readers(links.size(), 0);
  for (const Claim* claim : claims) {
    for_each_link(*claim, [&](std::size_t link) { readers[link] += 1; });
  }
  std::vector<double> parts;
  for (const Claim* claim : claims) {
    double least = kUnbounded;
    for_each_link(*claim, [&](std::size_t link) {
      least = std::min(least, std::max(0.0, links[link]) / readers[link]);
    });
    parts.push_back(least);
  }
  return parts;
}

/// Whole ones: rounded down, then to the job that lost most by that.
void deal_out_requests(const RateProblem& jobs, const Amounts& cache,
                       const Amounts& rates, std::vector<Grant>& grants) {
  if (!std::isfinite(jobs.shared().in_flight)) {
    for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
      grants[jobs.place_of(i)].in_flight = kUnbounded;
    }
    return;
  }
  double left = std::max(std::floor(jobs.shared().in_flight),
                         static_cast<double>(jobs.parties().size()));
  std::vector<std::pair<double, std::size_t>> lost;
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    const double needed = rates[i] * jobs.waits_of(i, cache[i]);
    double& given = grants[jobs.place_of(i)].in_flight;
    given = std::max(1.0, std::floor(needed + kRateSlack));
    left -= given;
    const double missing = needed > 0 ? (needed - given) / needed : 0;
    lost.emplace_back(-missing * jobs.parties()[i].normalised(rates[i]), i);
  }
  std::sort(lost.begin(), lost.end());
  for (const auto& [loss, i] : lost) {
    if (loss >= 0 || left < 1) break;
    grants[jobs.place_of(i)].in_flight += 1;
    left -= 1;
  }
  // One request is the least, so that these may be more than there were.
  while (left < 0) {
    double* most = nullptr;
    for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
      double& given = grants[jobs.place_of(i)].in_flight;
      if (most == nullptr || given > *most) most = &given;
    }
    if (*most <= 1) break;
    *most -= 1;
    left += 1;
  }
  const double each =
      std::floor(left / static_cast<double>(jobs.parties().size()));
  for (std::size_t i = 0; each >= 1 && i < jobs.parties().size(); ++i) {
    double& given = grants[jobs.place_of(i)].in_flight;
    given = std::max(
        given, std::min(given + each, jobs.parties()[i].claim->most_in_flight));
  }
}

void deal_out(const RateProblem& jobs, const Amounts& cache,
              const Amounts& rates, std::vector<Grant>& grants) {
  double threads = jobs.shared().threads;
  std::vector<double> links = links_of(jobs.shared());
  std::vector<const Claim*> claims;
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    Grant& grant = grants[jobs.place_of(i)];
    grant.cache_bytes = cache[i];
    grant.threads = std::max(jobs.least_threads(i, cache[i]),
                             whole(rates[i] * jobs.seconds_of(i, cache[i])));
    grant.bytes_per_second = rates[i] * jobs.bytes_of(i, cache[i]);
    threads -= grant.threads;
    claims.push_back(jobs.parties()[i].claim);
    for_each_link(*claims.back(), [&](std::size_t link) {
      links[link] -= grant.bytes_per_second;
    });
  }
  deal_out_requests(jobs, cache, rates, grants);
  const std::vector<double> more = even_bandwidths(links, claims);
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    Grant& grant = grants[jobs.place_of(i)];
    grant.bytes_per_second += more[i];
    if (threads >= 1 && grant.threads < jobs.parties()[i].claim->most_threads) {
      grant.threads += 1;
      threads -= 1;
    }
  }
}

/// Whether each job has what the floor promises, less `slack` of it, if it had
/// `more_requests` more requests than it was given.
bool all_have_floor(const RateProblem& jobs, std::span<const Grant> grants,
                    double more_requests, double slack) {
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    const Party& party = jobs.parties()[i];
    Grant grant = grants[jobs.place_of(i)];
    grant.threads = std::min(grant.threads, party.claim->most_threads);
    grant.in_flight =
        std::min(grant.in_flight + more_requests, party.claim->most_in_flight);
    const double rate = predict(party.claim->speed, grant).rate;
    if (rate < (1 - slack) * party.least) return false;
  }
  return true;
}

/// The best shares that were found.
std::vector<Grant> best_shares(const RateProblem& jobs) {
  std::vector<Grant> grants = jobs.even();
  if (jobs.parties().empty()) return grants;
  // With threads that can be split first, and then with whole ones.
  Amounts cache = best_cache(jobs, {});
  std::optional<Amounts> rates =
      jobs.feasible_rates(cache, whole_threads(jobs, cache));
  for (int turn = 0; turn < 2 && jobs.shared().cache_bytes > 0; ++turn) {
    const Amounts other = best_cache(jobs, whole_threads(jobs, cache));
    const std::optional<Amounts> found =
        jobs.feasible_rates(other, whole_threads(jobs, other));
    if (!found || (rates && !jobs.is_better_than(*found, *rates))) break;
    cache = other;
    rates = found;
  }
  if (!rates) rates = jobs.rates_with(cache, whole_threads(jobs, cache));
  deal_out(jobs, cache, *rates, grants);
  return grants;
}

}  // namespace

std::string_view to_string(Objective objective) {
  return objective == Objective::kThroughput ? "throughput" : "fairness";
}

std::vector<double> links_of(const NodeResources& node) {
  std::vector<double> links = {node.bytes_per_second};
  links.insert(links.end(), node.bucket_bytes_per_second.begin(),
               node.bucket_bytes_per_second.end());
  return links;
}

double narrowest_link(const NodeResources& node, const Claim& claim) {
  double least = node.bytes_per_second;
  for (const std::size_t bucket : claim.buckets) {
    least = std::min(least, node.bucket_bytes_per_second[bucket]);
  }
  return least;
}

double rate_alone(const NodeResources& node, const Claim& claim) {
  return predict(claim.speed,
                 {.threads = std::min(claim.most_threads,
                                      std::max(1.0, std::floor(node.threads))),
                  .in_flight = std::min(claim.most_in_flight,
                                        std::max(1.0, node.in_flight)),
                  .bytes_per_second = narrowest_link(node, claim),
                  .cache_bytes =
                      std::min(node.cache_bytes, claim.most_cache_bytes)})
      .rate;
}

std::vector<Grant> even_split(const NodeResources& node,
                              std::span<const Claim> claims) {
  std::vector<Grant> grants;
  const std::size_t count = claims.size();
  std::vector<double> rooms;
  std::vector<const Claim*> all;
  for (const Claim& claim : claims) {
    rooms.push_back(claim.most_cache_bytes);
    all.push_back(&claim);
  }
  const std::vector<double> bandwidths = even_bandwidths(links_of(node), all);
  const std::vector<double> caches = even_parts(node.cache_bytes, rooms);
  for (std::size_t i = 0; i < count; ++i) {
    const auto rest_of = [&](double of) {
      const double each = std::floor(of / static_cast<double>(count));
      const double left = std::floor(of) - each * static_cast<double>(count);
      return std::max(1.0, each + (static_cast<double>(i) < left ? 1 : 0));
    };
    grants.push_back({.threads = rest_of(node.threads),
                      .in_flight = std::isfinite(node.in_flight)
                                       ? rest_of(node.in_flight)
                                       : kUnbounded,
                      .bytes_per_second = bandwidths[i],
                      .cache_bytes = caches[i]});
  }
  return grants;
}

void deal_out_cache(const NodeResources& node, std::span<const Claim> claims,
                    std::span<Grant> grants) {
  double left = node.cache_bytes;
  std::vector<double> rooms;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    left -= grants[i].cache_bytes;
    rooms.push_back(claims[i].most_cache_bytes - grants[i].cache_bytes);
  }
  const std::vector<double> more = even_parts(std::max(0.0, left), rooms);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    grants[i].cache_bytes += more[i];
  }
}

std::vector<double> normalised_rates(const NodeResources& node,
                                     std::span<const Claim> claims,
                                     std::span<const Grant> grants) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const double alone = rate_alone(node, claims[i]);
    if (!std::isfinite(alone) || alone <= 0) continue;
    Grant grant = grants[i];
    grant.threads = std::min(grant.threads, claims[i].most_threads);
    grant.in_flight = std::min(grant.in_flight, claims[i].most_in_flight);
    const double rate = std::min({predict(claims[i].speed, grant).rate,
                                  claims[i].outside_ceiling, claims[i].wanted});
    rates.push_back(claims[i].worth * std::min(1.0, rate / alone));
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

bool is_better(Objective objective, std::span<const double> rates,
               std::span<const double> than) {
  if (objective == Objective::kThroughput) {
    const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
    return sum > std::accumulate(than.begin(), than.end(), 0.0) + kRateSlack;
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] > than[i] + kRateSlack) return true;
    if (rates[i] < than[i] - kRateSlack) return false;
  }
  return false;
}

double relative_gain(Objective objective, std::span<const double> better,
                     std::span<const double> worse) {
  const auto gain = [](double after, double before) {
    if (before <= 0) return after > 0 ? kUnbounded : 0;
    return after / before - 1;
  };
  if (objective == Objective::kThroughput) {
    const double sum = std::accumulate(better.begin(), better.end(), 0.0);
    return gain(sum, std::accumulate(worse.begin(), worse.end(), 0.0));
  }
  if (better.empty() || worse.empty()) return better.empty() ? 0 : kUnbounded;
  double most = gain(better.front(), worse.front());
  const std::size_t count = std::min(better.size(), worse.size());
  for (std::size_t i = 1; i < count; ++i) {
    if (better[i - 1] < worse[i - 1] - kRateSlack) break;
    most = std::max(most, gain(better[i], worse[i]));
  }
  return most;
}

bool keeps_floor(const NodeResources& node, std::span<const Claim> claims,
                 std::span<const Grant> grants,
                 const AllocationOptions& options) {
  return all_have_floor(RateProblem(node, claims, options), grants, 0,
                        kFloorSlack);
}

std::vector<Grant> allocate(const NodeResources& node,
                            std::span<const Claim> claims,
                            const AllocationOptions& options) {
  const RateProblem jobs(node, claims, options);
  std::vector<Grant> grants = best_shares(jobs);
  std::vector<Grant> even = even_split(node, claims);
  // Whole requests, one at least, may break a floor that parts of them kept.
  const bool is_even_better =
      !all_have_floor(jobs, grants, kMissingRequests, kNumericSlack) ||
      is_better(options.objective, normalised_rates(node, claims, even),
                normalised_rates(node, claims, grants));
  return is_even_better ? even : grants;
}

}  // namespace leat
