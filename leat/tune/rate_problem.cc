#include "leat/tune/rate_problem.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat {

PackedAmounts shared_amounts(const NodeResources& node) {
  PackedAmounts amounts = {node.threads, node.in_flight};
  const std::vector<double> links = links_of(node);
  amounts.insert(amounts.end(), links.begin(), links.end());
  return amounts;
}

PackedAmounts needed_amounts(const NodeResources& node, const Claim& claim,
                             double cache_bytes) {
  const JobSpeed& speed = claim.speed;
  const double missed = missed_part(speed, cache_bytes);
  PackedAmounts amounts(kFirstLinkRow + 1 + node.bucket_bytes_per_second.size(),
                        0);
  amounts[kThreadRow] = seconds_per_sample(speed, cache_bytes);
  amounts[kRequestRow] =
      speed.latency_seconds * speed.reads_per_sample * missed;
  const double bytes = speed.read_bytes_per_sample * missed;
  amounts[kFirstLinkRow] = bytes;
  for (const std::size_t bucket : claim.buckets) {
    amounts[kFirstLinkRow + 1 + bucket] = bytes;
  }
  return amounts;
}

RateProblem::RateProblem(const NodeResources& node,
                         std::span<const Claim> claims,
                         const AllocationOptions& options)
    : options_(options), even_(even_split(node, claims)), rest_(node) {
  rest_.threads =
      std::max(std::floor(node.threads), static_cast<double>(claims.size()));
  for (std::size_t i = 0; i < claims.size(); ++i) admit(node, claims[i], i);
}

void RateProblem::admit(const NodeResources& node, const Claim& claim,
                        std::size_t index) {
  const double alone = rate_alone(node, claim);
  const Grant& even = even_[index];
  if (!std::isfinite(alone) || alone <= 0) {
    rest_.threads -= even.threads;
    rest_.in_flight -= std::isfinite(even.in_flight) ? even.in_flight : 0;
    if (std::isfinite(even.bytes_per_second)) {
      const double kept =
          std::min(even.bytes_per_second, claim.used_bytes_per_second);
      rest_.bytes_per_second -= kept;
      for (const std::size_t bucket : claim.buckets) {
        rest_.bucket_bytes_per_second[bucket] -= kept;
      }
    }
    rest_.cache_bytes -= even.cache_bytes;
    return;
  }
  Party party{.claim = &claim, .alone = alone / claim.worth};
  Grant promised = even;
  promised.threads = std::min(claim.most_threads, even.threads);
  promised.in_flight = std::min(claim.most_in_flight, even.in_flight);
  // Not bounded by the outside: two nodes that each follow the other would go
  // down together.
  party.least = std::min(
      claim.wanted,
      options_.floor * std::min(alone, predict(claim.speed, promised).rate));
  party.most = std::max(party.least,
                        std::min({alone, claim.outside_ceiling, claim.wanted}));
  parties_.push_back(party);
  places_.push_back(index);
}

double RateProblem::seconds_of(std::size_t i, double cache_bytes) const {
  return seconds_per_sample(parties_[i].claim->speed, cache_bytes);
}

double RateProblem::least_threads(std::size_t i, double cache_bytes) const {
  const double needed = whole(parties_[i].least * seconds_of(i, cache_bytes));
  return std::max(1.0, std::min({needed, even_[places_[i]].threads,
                                 parties_[i].claim->most_threads}));
}

double RateProblem::rate_of(std::size_t i, double threads,
                            double cache_bytes) const {
  const double seconds = seconds_of(i, cache_bytes);
  if (seconds <= 0) return kUnbounded;
  return std::min(threads, parties_[i].claim->most_threads) / seconds;
}

double RateProblem::waits_of(std::size_t i, double cache_bytes) const {
  const JobSpeed& speed = parties_[i].claim->speed;
  return speed.latency_seconds * speed.reads_per_sample *
         missed_part(speed, cache_bytes);
}

double RateProblem::bytes_of(std::size_t i, double cache_bytes) const {
  const JobSpeed& speed = parties_[i].claim->speed;
  return speed.read_bytes_per_sample * missed_part(speed, cache_bytes);
}

RateProblem::Problem RateProblem::problem(const Amounts& cache,
                                          const Amounts& threads) const {
  Problem made;
  const PackedAmounts all = shared_amounts(rest_);
  made.capacity = all;
  if (!threads.empty()) made.capacity[kThreadRow] = kUnbounded;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    const Party& party = parties_[i];
    PackingItem item{.worth = 1 / party.alone};
    item.needs = needed_amounts(rest_, *party.claim, cache[i]);
    if (!threads.empty()) item.needs[kThreadRow] = 0;
    const double most_threads = threads.empty() ? kUnbounded : threads[i];
    double most = std::min(party.most, rate_of(i, most_threads, cache[i]));
    if (item.needs[kRequestRow] > 0) {
      most =
          std::min(most, party.claim->most_in_flight / item.needs[kRequestRow]);
    }
    const double least = std::min(party.least, most);
    item.most = most - least;
    for (std::size_t r = 0; r < all.size(); ++r) {
      made.capacity[r] -= item.needs[r] * least;
    }
    // With this cache and these threads the job cannot reach its floor.
    if (least < party.least * (1 - kRateSlack)) made.is_feasible = false;
    made.least.push_back(least);
    made.items.push_back(std::move(item));
  }
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (made.capacity[r] >= 0) continue;
    if (made.capacity[r] < -kRateSlack * all[r]) made.is_feasible = false;
    made.capacity[r] = 0;
  }
  return made;
}

std::optional<Amounts> RateProblem::feasible_rates(
    const Amounts& cache, const Amounts& threads) const {
  const Problem made = problem(cache, threads);
  if (!made.is_feasible) return std::nullopt;
  return solve(made);
}

Amounts RateProblem::rates_with(const Amounts& cache,
                                const Amounts& threads) const {
  return solve(problem(cache, threads));
}

bool RateProblem::is_better_than(const Amounts& rates,
                                 const Amounts& than) const {
  return is_better(options_.objective, normalised(rates), normalised(than));
}

Amounts RateProblem::solve(const Problem& made) const {
  Amounts rates = options_.objective == Objective::kThroughput
                      ? pack(made.items, made.capacity)
                      : raise_together(made);
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] += made.least[i];
  return rates;
}

Amounts RateProblem::raise_together(const Problem& made) const {
  Amounts rates(parties_.size(), 0);
  std::vector<bool> is_done(parties_.size(), false);
  PackedAmounts left = made.capacity;
  PackedAmounts used;
  for (std::size_t round = 0; round <= parties_.size(); ++round) {
    const auto at_level = [&](std::size_t i, double level) {
      return is_done[i] ? rates[i]
                        : std::clamp(level * parties_[i].alone - made.least[i],
                                     0.0, made.items[i].most);
    };
    const auto fits = [&](double level) {
      used.assign(left.size(), 0);
      for (std::size_t i = 0; i < rates.size(); ++i) {
        for (std::size_t r = 0; r < left.size(); ++r) {
          used[r] += made.items[i].needs[r] * at_level(i, level);
        }
      }
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (used[r] > made.capacity[r]) return false;
      }
      return true;
    };
    double low = 0;
    double high = 1;
    if (fits(high)) low = high;
    for (int half = 0; half < 45 && low < high; ++half) {
      const double middle = (low + high) / 2;
      (fits(middle) ? low : high) = middle;
    }
    for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = at_level(i, low);
    if (low >= 1) break;
    left = made.capacity;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      for (std::size_t r = 0; r < left.size(); ++r) {
        left[r] -= made.items[i].needs[r] * rates[i];
      }
    }
    bool is_over = true;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] >= made.items[i].most * (1 - kRateSlack)) is_done[i] = true;
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (made.items[i].needs[r] > 0 && std::isfinite(left[r]) &&
            left[r] <= 1e-7 * made.capacity[r]) {
          is_done[i] = true;
        }
      }
      is_over = is_over && is_done[i];
    }
    if (is_over) break;
  }
  return rates;
}

Amounts RateProblem::normalised(const Amounts& rates) const {
  Amounts sorted(rates.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    sorted[i] = parties_[i].normalised(rates[i]);
  }
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace leat
