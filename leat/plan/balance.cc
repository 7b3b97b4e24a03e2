// Two rules divide items among groups:
//
// - largest differencing with equal counts (N. Karmarkar and R. M. Karp, "The
//   Differencing Method of Set Partitioning", 1982; W. Michiels et al.,
//   "Performance Ratios for the Differencing Method", 2003): items by falling
//   cost are cut into tuples of one item a group. The two tuples whose groups
//   differ most are joined, heavy groups with light ones, until one is left;
// - longest processing time (R. L. Graham, "Bounds on Multiprocessing Timing
//   Anomalies", 1969): the next heaviest item to the lightest group that is not
//   full.
//
// And there are two ways to the micro-batches. Either all groups of the step
// are made alike; the heaviest make up a micro-batch, then the next. Or the
// heaviest items make up a micro-batch, and its ranks are made alike, as
// torchtitan does (torchtitan/components/data/load_balancing/planner.py). The
// second way wins where few items cost more than a group should. We go both,
// and keep the better.

#include "leat/plan/balance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint32_t kNoItem = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostItems = 0x7fffffff;

using Items = std::span<const std::uint32_t>;

/// Groups of items.
struct Division {
  std::vector<std::vector<std::uint32_t>> items;
  std::vector<double> costs;

  explicit Division(std::size_t groups) : items(groups), costs(groups) {}
  void add(std::size_t group, std::uint32_t item, double cost) {
    items[group].push_back(item);
    costs[group] += cost;
  }
  double largest() const { return std::ranges::max(costs); }
};

/// Items with the same place in all tuples so far: a list through `next`.
struct Chain {
  double cost = 0;
  std::uint32_t first = kNoItem;
  std::uint32_t last = kNoItem;

  /// Heavier ones first; the order is total, so every machine has the same.
  bool operator<(const Chain& other) const {
    return cost != other.cost ? cost > other.cost : first < other.first;
  }
};

/// Largest differencing. `falling` has the items by falling cost.
class Differencing {
 public:
  Differencing(std::span<const double> costs, Items falling, std::size_t groups)
      : groups_(groups), next_(costs.size(), kNoItem) {
    chains_.resize((falling.size() + groups - 1) / groups * groups);
    for (std::size_t i = 0; i < falling.size(); ++i) {
      chains_[i] = {costs[falling[i]], falling[i], falling[i]};
    }
  }

  Division divide(std::span<const double> costs) {
    Division division(groups_);
    if (chains_.empty()) return division;
    const std::span<Chain> whole = join_all();
    for (std::size_t group = 0; group < groups_; ++group) {
      for (auto item = whole[group].first; item != kNoItem;
           item = next_[item]) {
        division.add(group, item, costs[item]);
      }
    }
    return division;
  }

 private:
  struct Tuple {
    double difference = 0;
    std::size_t number = 0;
    bool operator<(const Tuple& other) const {
      return difference != other.difference ? difference < other.difference
                                            : number > other.number;
    }
  };

  std::span<Chain> chains(std::size_t tuple) {
    return std::span(chains_).subspan(tuple * groups_, groups_);
  }
  Tuple tuple(std::size_t number) {
    const auto sorted = chains(number);
    return {sorted.front().cost - sorted.back().cost, number};
  }

  std::span<Chain> join_all() {
    std::priority_queue<Tuple> tuples;
    for (std::size_t i = 0; i < chains_.size() / groups_; ++i) {
      tuples.push(tuple(i));
    }
    while (tuples.size() > 1) {
      const std::size_t kept = tuples.top().number;
      tuples.pop();
      const std::size_t joined = tuples.top().number;
      tuples.pop();
      join(chains(kept), chains(joined));
      tuples.push(tuple(kept));
    }
    return chains(tuples.top().number);
  }

  void join(std::span<Chain> kept, std::span<Chain> joined) {
    for (std::size_t i = 0; i < groups_; ++i) {
      const Chain& light = joined[groups_ - 1 - i];
      kept[i].cost += light.cost;
      if (light.first == kNoItem) continue;
      (kept[i].first == kNoItem ? kept[i].first : next_[kept[i].last]) =
          light.first;
      kept[i].last = light.last;
    }
    std::ranges::sort(kept, std::less<>());
  }

  const std::size_t groups_;
  std::vector<Chain> chains_;  // Tuple by tuple, each by falling cost.
  std::vector<std::uint32_t> next_;
};

/// Longest processing time, with at most `room` items a group.
Division longest_first(std::span<const double> costs, Items falling,
                       std::size_t groups, std::size_t room) {
  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (std::size_t group = 0; group < groups; ++group)
    lightest.push({0, group});
  Division division(groups);
  for (const std::uint32_t item : falling) {
    const std::size_t group = lightest.top().second;
    lightest.pop();
    division.add(group, item, costs[item]);
    if (division.items[group].size() < room) {
      lightest.push({division.costs[group], group});
    }
  }
  return division;
}

Division divide(std::span<const double> costs, Items falling,
                std::size_t groups, bool equal_counts) {
  if (!equal_counts) {
    return longest_first(costs, falling, groups, falling.size());
  }
  Division best = Differencing(costs, falling, groups).divide(costs);
  if (falling.size() % groups != 0) return best;  // Only it evens out counts.
  Division other =
      longest_first(costs, falling, groups, falling.size() / groups);
  return other.largest() < best.largest() ? std::move(other) : std::move(best);
}

std::vector<std::uint32_t> numbers_below(std::size_t n) {
  std::vector<std::uint32_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

/// Sorted by falling cost; equal ones stay as they stand.
std::vector<std::uint32_t> by_falling(std::span<const double> costs,
                                      std::vector<std::uint32_t> numbers) {
  std::ranges::stable_sort(numbers, std::greater<>(),
                           [&](std::uint32_t i) { return costs[i]; });
  return numbers;
}

/// A deal that grows micro-batch by micro-batch.
class Deal {
 public:
  Deal(std::size_t items, const BalanceOptions& options)
      : loads_(options.ranks) {
    deal_.group_of.resize(items);
    deal_.costs.reserve(std::size_t{options.ranks} * options.micro_batches);
  }

  /// The next micro-batch: the heaviest group to the rank that has least.
  void add(const Division& groups, Items chosen) {
    const auto heaviest =
        by_falling(groups.costs, {chosen.begin(), chosen.end()});
    auto ranks = numbers_below(loads_.size());
    std::ranges::stable_sort(ranks, std::less<>(),
                             [&](std::uint32_t i) { return loads_[i]; });
    const std::size_t begin = deal_.costs.size();
    deal_.costs.resize(begin + loads_.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::uint32_t group = heaviest[i];
      for (const std::uint32_t item : groups.items[group]) {
        deal_.group_of[item] = static_cast<std::uint32_t>(begin + ranks[i]);
      }
      deal_.costs[begin + ranks[i]] = groups.costs[group];
      loads_[ranks[i]] += groups.costs[group];
    }
    slowest_ += groups.costs[heaviest.front()];
  }

  /// The sum over micro-batches of the slowest rank's.
  double slowest() const { return slowest_; }
  BalancedDeal take() && { return std::move(deal_); }

 private:
  std::vector<double> loads_;  // The sum of each rank so far.
  double slowest_ = 0;
  BalancedDeal deal_;
};

/// All groups of the step alike.
Deal deal_alike(std::span<const double> costs, Items falling,
                const BalanceOptions& options) {
  const std::size_t groups = std::size_t{options.ranks} * options.micro_batches;
  const Division division =
      divide(costs, falling, groups, options.equal_counts);
  const std::vector<std::uint32_t> order =
      by_falling(division.costs, numbers_below(groups));
  Deal deal(costs.size(), options);
  for (std::size_t m = 0; m < options.micro_batches; ++m) {
    deal.add(division, Items(order).subspan(m * options.ranks, options.ranks));
  }
  return deal;
}

/// The heaviest items together, and within a micro-batch its ranks alike.
Deal deal_in_cohorts(std::span<const double> costs, Items falling,
                     const BalanceOptions& options) {
  const auto all = numbers_below(options.ranks);
  Deal deal(costs.size(), options);
  std::size_t begin = 0;
  for (std::size_t m = 0; m < options.micro_batches; ++m) {
    const std::size_t end = costs.size() * (m + 1) / options.micro_batches;
    deal.add(divide(costs, falling.subspan(begin, end - begin), options.ranks,
                    options.equal_counts),
             all);
    begin = end;
  }
  return deal;
}

Result<void> check(std::span<const double> costs,
                   const BalanceOptions& options) {
  const std::uint64_t groups =
      std::uint64_t{options.ranks} * options.micro_batches;
  if (groups == 0 || groups > kMostItems) {
    return invalid(
        "{} ranks of {} micro-batches; there are 1 to {} micro-batches in all",
        options.ranks, options.micro_batches, kMostItems);
  }
  if (costs.size() > kMostItems) {
    return invalid("{} items in a step; at most {} can be dealt", costs.size(),
                   kMostItems);
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (!std::isfinite(costs[i]) || costs[i] < 0) {
      return invalid(
          "the cost of item {} is {}; a cost is a finite number, 0 or more", i,
          costs[i]);
    }
  }
  return {};
}

}  // namespace

Result<BalancedDeal> balance(std::span<const double> costs,
                             const BalanceOptions& options) {
  LEAT_TRY_VOID(check(costs, options));
  const std::vector<std::uint32_t> falling =
      by_falling(costs, numbers_below(costs.size()));
  Deal alike = deal_alike(costs, falling, options);
  if (options.micro_batches == 1) return std::move(alike).take();
  Deal in_cohorts = deal_in_cohorts(costs, falling, options);
  return std::move(in_cohorts.slowest() < alike.slowest() ? in_cohorts : alike)
      .take();
}

}  // namespace leat
