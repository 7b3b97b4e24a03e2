#include "leat/plan/balance.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using Costs = std::vector<double>;

BalancedDeal dealt(const Costs& costs, const BalanceOptions& options) {
  auto deal = balance(costs, options);
  if (!deal) {
    ADD_FAILURE() << deal.error().message();
    return {};
  }
  return *std::move(deal);
}

std::vector<std::size_t> counts_of(const BalancedDeal& deal) {
  std::vector<std::size_t> counts(deal.costs.size());
  for (const std::uint32_t group : deal.group_of) ++counts.at(group);
  return counts;
}

TEST(BalanceTest, DifferencingFindsWhatTheLongestFirstMisses) {
  // The longest first gives 38, 35 and 32.
  const BalancedDeal deal =
      dealt({19, 16, 16, 16, 13, 10, 9, 3, 3}, {.ranks = 3});

  EXPECT_EQ(counts_of(deal), (std::vector<std::size_t>{3, 3, 3}));
  EXPECT_EQ(deal.costs, (Costs{35, 35, 35}));
}

TEST(BalanceTest, WithoutEqualCountsOnlyCostsCount) {
  const Costs costs = {9, 3, 3, 3};
  EXPECT_EQ(dealt(costs, {.ranks = 2, .equal_counts = false}).costs,
            (Costs{9, 9}));
  EXPECT_EQ(dealt(costs, {.ranks = 2}).costs, (Costs{12, 6}));
}

TEST(BalanceTest, CountsDifferByOneAtMost) {
  const auto counts =
      counts_of(dealt({5, 4, 3, 2, 1, 1, 1}, {.ranks = 2, .micro_batches = 2}));
  EXPECT_EQ(std::ranges::min(counts), 1U);
  EXPECT_EQ(std::ranges::max(counts), 2U);
}

TEST(BalanceTest, MicroBatchesOfOneItemHaveTheHeaviestTogether) {
  // As they stand, each micro-batch would take 9.
  const BalancedDeal deal =
      dealt({9, 1, 8, 2}, {.ranks = 2, .micro_batches = 2});

  EXPECT_EQ(deal.costs, (Costs{9, 8, 1, 2}));  // The ranks' sums are even.
  EXPECT_EQ(deal.group_of, (std::vector<std::uint32_t>{0, 2, 1, 3}));
}

TEST(BalanceTest, HeavyItemsShareAMicroBatchWhereThatIsQuicker) {
  // Groups that are as alike as can be have 50 in two of them: 101 + 51 in all.
  const BalancedDeal deal =
      dealt({1, 50, 1, 1, 100, 1, 1, 50}, {.ranks = 2, .micro_batches = 2});

  EXPECT_EQ(deal.costs, (Costs{101, 100, 2, 2}));
}

TEST(BalanceTest, NothingIsDealtToo) {
  EXPECT_EQ(dealt({}, {.ranks = 2}).costs, (Costs{0, 0}));
  EXPECT_EQ(dealt({7}, {.ranks = 2, .micro_batches = 2}).costs,
            (Costs{7, 0, 0, 0}));
}

TEST(BalanceTest, BadArgumentsAreNamed) {
  const auto refusal = [](const Costs& costs, const BalanceOptions& options) {
    return balance(costs, options).error().message();
  };
  EXPECT_EQ(refusal({1}, {.ranks = 0}),
            "0 ranks of 1 micro-batches; there are 1 to 2147483647 "
            "micro-batches in all");
  EXPECT_EQ(refusal({1, -2}, {}),
            "the cost of item 1 is -2; a cost is a finite number, 0 or more");
  EXPECT_EQ(refusal({std::numeric_limits<double>::infinity()}, {}),
            "the cost of item 0 is inf; a cost is a finite number, 0 or more");
  EXPECT_EQ(refusal({std::nan("")}, {}),
            "the cost of item 0 is nan; a cost is a finite number, 0 or more");
}

// --- any step ---------------------------------------------------------------

struct Step {
  Costs costs;
  BalanceOptions options;
};

/// Heavy tails, as sequences have: a few items cost as much as all others.
Step some_step(bool is_whole) {
  Step step;
  step.options.ranks = *rc::gen::inRange<std::uint32_t>(1, 6);
  step.options.micro_batches = *rc::gen::inRange<std::uint32_t>(1, 5);
  const std::uint32_t groups = step.options.ranks * step.options.micro_batches;
  const auto count = is_whole ? groups * *rc::gen::inRange<std::size_t>(1, 5)
                              : *rc::gen::inRange<std::size_t>(0, 60);
  step.costs = *rc::gen::container<Costs>(
      count, rc::gen::map(rc::gen::inRange(0, 100), [](int length) {
        return std::pow(static_cast<double>(length), 3);
      }));
  return step;
}

RC_GTEST_PROP(BalanceProperty, EachItemIsInOneGroupAndCountsAreEven, ()) {
  const Step step = some_step(/*is_whole=*/false);
  const auto deal = balance(step.costs, step.options);
  RC_ASSERT(deal.has_value());
  RC_ASSERT(deal->group_of.size() == step.costs.size());

  Costs costs(step.options.ranks * step.options.micro_batches);
  for (std::size_t i = 0; i < step.costs.size(); ++i) {
    costs.at(deal->group_of[i]) += step.costs[i];
  }
  RC_ASSERT(costs == deal->costs);  // Whole numbers: sums are exact.
  const auto counts = counts_of(*deal);
  RC_ASSERT(std::ranges::max(counts) - std::ranges::min(counts) <= 1U);
}

/// The sum of the slowest ranks if the heaviest items make up a micro-batch,
/// and each goes to the rank with the least that has room.
double longest_first_in_cohorts(const Step& step) {
  Costs falling = step.costs;
  std::ranges::sort(falling, std::greater<>());
  const std::size_t cohort = falling.size() / step.options.micro_batches;
  double sum = 0;
  for (std::size_t begin = 0; begin < falling.size(); begin += cohort) {
    std::vector<std::pair<double, std::size_t>> ranks(step.options.ranks);
    for (std::size_t i = begin; i < begin + cohort; ++i) {
      auto lightest = ranks.end();
      for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
        const bool has_room = rank->second < cohort / ranks.size();
        if (has_room && (lightest == ranks.end() || *rank < *lightest)) {
          lightest = rank;
        }
      }
      lightest->first += falling[i];
      ++lightest->second;
    }
    sum += std::ranges::max(ranks).first;
  }
  return sum;
}

RC_GTEST_PROP(BalanceProperty, IsNoSlowerThanTheLongestFirstInCohorts, ()) {
  const Step step = some_step(/*is_whole=*/true);
  const auto deal = balance(step.costs, step.options);
  RC_ASSERT(deal.has_value());
  double slowest = 0;
  for (std::size_t begin = 0; begin < deal->costs.size();
       begin += step.options.ranks) {
    slowest += std::ranges::max(
        std::span(deal->costs).subspan(begin, step.options.ranks));
  }
  RC_ASSERT(slowest <= longest_first_in_cohorts(step));
}

}  // namespace
}  // namespace leat
