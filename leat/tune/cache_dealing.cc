#include "leat/tune/cache_dealing.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace leat {
namespace {

/// More would be of no use, or is not allowed.
double most_cache(const RateProblem& jobs, std::size_t party) {
  const Claim& claim = *jobs.parties()[party].claim;
  return std::min(claim.speed.dataset_bytes, claim.most_cache_bytes);
}

Amounts even_cache(const RateProblem& jobs) {
  Amounts cache;
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    cache.push_back(jobs.even()[jobs.place_of(i)].cache_bytes);
  }
  return cache;
}

/// To `first`, if there is one, and then to the job in which a byte saves most
/// at these rates.
Amounts cache_for(const RateProblem& jobs, const Amounts& rates,
                  std::size_t first, bool saves_bytes) {
  std::vector<std::pair<double, std::size_t>> saved;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const JobSpeed& speed = jobs.parties()[i].claim->speed;
    if (speed.dataset_bytes <= 0) continue;
    const double each = saves_bytes ? jobs.bytes_of(i, 0) : jobs.waits_of(i, 0);
    const double saving = rates[i] * each / speed.dataset_bytes;
    saved.emplace_back(i == first ? -kUnbounded : -saving, i);
  }
  std::sort(saved.begin(), saved.end());
  Amounts cache(rates.size(), 0);
  double left = std::max(0.0, jobs.shared().cache_bytes);
  for (const auto& [unused, i] : saved) {
    cache[i] = std::min(left, most_cache(jobs, i));
    left -= cache[i];
  }
  return cache;
}

Amounts between(const Amounts& a, const Amounts& b) {
  Amounts middle(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) middle[i] = (a[i] + b[i]) / 2;
  return middle;
}

template <class Offer>
bool move_cache(const RateProblem& jobs, double bytes, const Amounts& best,
                const Offer& offer) {
  bool has_moved = false;
  for (std::size_t from = 0; from < best.size(); ++from) {
    for (std::size_t to = 0; to < best.size(); ++to) {
      if (from == to) continue;
      Amounts cache = best;
      const double moved =
          std::min({bytes, cache[from], most_cache(jobs, to) - cache[to]});
      if (moved <= 0) continue;
      cache[from] -= moved;
      cache[to] += moved;
      has_moved = offer(cache) || has_moved;
    }
  }
  return has_moved;
}

}  // namespace

Amounts best_cache(const RateProblem& jobs, const Amounts& threads) {
  Amounts best = even_cache(jobs);
  std::optional<Amounts> rates = jobs.feasible_rates(best, threads);
  if (jobs.shared().cache_bytes <= 0 || !rates) return best;
  const auto offer = [&](const Amounts& cache) {
    std::optional<Amounts> found = jobs.feasible_rates(cache, threads);
    if (!found || !jobs.is_better_than(*found, *rates)) return false;
    best = cache;
    rates = std::move(found);
    return true;
  };
  Amounts most;
  for (const Party& party : jobs.parties()) most.push_back(party.most);
  // Each first, for what comes next is what few orders tell apart.
  for (std::size_t first = 0; first <= jobs.parties().size(); ++first) {
    for (const bool saves_bytes : {true, false}) {
      Amounts from = most;
      for (int turn = 0; turn < 4; ++turn) {
        const Amounts cache = cache_for(jobs, from, first, saves_bytes);
        offer(cache);
        offer(between(cache, even_cache(jobs)));
        const std::optional<Amounts> next = jobs.feasible_rates(cache, threads);
        if (!next || *next == from) break;
        from = *next;
      }
    }
  }
  for (double part = 0.25; part > 0.01; part /= 2) {
    for (std::size_t turn = 0; turn < 8; ++turn) {
      if (!move_cache(jobs, part * jobs.shared().cache_bytes, best, offer))
        break;
    }
  }
  return best;
}

}  // namespace leat
