#include "leat/tune/thread_dealing.h"

#include <algorithm>
#include <optional>

namespace leat {
namespace {

/// Gives threads one by one while one gains, none beyond the rate `most`.
void give(const RateProblem& jobs, const Amounts& cache, const Amounts& most,
          Amounts& threads, double& left) {
  while (left >= 1) {
    std::optional<std::size_t> best;
    double best_gain = 0;
    double best_level = kUnbounded;
    for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
      const Party& party = jobs.parties()[i];
      const double now =
          std::min(most[i], jobs.rate_of(i, threads[i], cache[i]));
      const double then =
          std::min(most[i], jobs.rate_of(i, threads[i] + 1, cache[i]));
      const double gain = party.normalised(then) - party.normalised(now);
      if (gain <= kRateSlack) continue;
      const double level = party.normalised(now);
      // Between two that are equally low, the one that climbs further comes
      // first: its successor in the order is then the higher. Between two that
      // gain equally, the lower one.
      const bool is_lower = level < best_level - kRateSlack;
      const bool is_as_low = level <= best_level + kRateSlack;
      const bool gains_more = gain > best_gain + kRateSlack;
      const bool gains_as_much = gain >= best_gain - kRateSlack;
      const bool is_next = jobs.objective() == Objective::kThroughput
                               ? gains_more || (gains_as_much && is_lower)
                               : is_lower || (is_as_low && gains_more);
      if (!is_next) continue;
      best = i;
      best_gain = gain;
      best_level = level;
    }
    if (!best) return;
    threads[*best] += 1;
    left -= 1;
  }
}

void move_threads(const RateProblem& jobs, const Amounts& cache,
                  Amounts& threads) {
  Amounts rates = jobs.rates_with(cache, threads);
  for (std::size_t turn = 0; turn < 2 * jobs.parties().size(); ++turn) {
    const Amounts before = threads;
    for (std::size_t from = 0; from < before.size(); ++from) {
      if (before[from] <= jobs.least_threads(from, cache[from])) continue;
      for (std::size_t to = 0; to < before.size(); ++to) {
        if (from == to || jobs.rate_of(to, before[to], cache[to]) >=
                              jobs.parties()[to].most) {
          continue;
        }
        Amounts moved = before;
        moved[from] -= 1;
        moved[to] += 1;
        const Amounts found = jobs.rates_with(cache, moved);
        if (!jobs.is_better_than(found, rates)) continue;
        rates = found;
        threads = moved;
      }
    }
    if (threads == before) return;
  }
}

}  // namespace

Amounts whole_threads(const RateProblem& jobs, const Amounts& cache) {
  Amounts threads;
  double left = jobs.shared().threads;
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    threads.push_back(jobs.least_threads(i, cache[i]));
    left -= threads.back();
  }
  Amounts most =
      jobs.rates_with(cache, Amounts(jobs.parties().size(), kUnbounded));
  bool reads_run_short = false;
  for (std::size_t i = 0; i < jobs.parties().size(); ++i) {
    reads_run_short |= most[i] < jobs.parties()[i].most * (1 - kRateSlack);
  }
  if (reads_run_short) {
    // First towards what the relaxed rates need, then to any use.
    if (const auto rates = jobs.feasible_rates(cache, {}))
      give(jobs, cache, *rates, threads, left);
  }
  for (std::size_t i = 0; i < jobs.parties().size(); ++i)
    most[i] = jobs.parties()[i].most;
  give(jobs, cache, most, threads, left);
  if (reads_run_short) move_threads(jobs, cache, threads);
  return threads;
}

}  // namespace leat
