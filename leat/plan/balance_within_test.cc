#include "leat/plan/balance_within.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace leat {
namespace {

using Costs = std::vector<double>;
using Sizes = std::vector<std::uint64_t>;
using Groups = std::vector<std::uint32_t>;

Costs squares(const Sizes& sizes) {
  Costs costs;
  for (const std::uint64_t size : sizes) {
    costs.push_back(static_cast<double>(size * size));
  }
  return costs;
}

TEST(BalanceWithinTest, ExchangesWhatFits) {
  // 64 + 1 against 25 + 9 + 1 and 10 tokens each.
  const Sizes sizes = {8, 1, 5, 3, 1};
  const Costs costs = squares(sizes);
  const Groups as_given = {0, 0, 1, 1, 1};
  const auto deal = balance_within(
      {.costs = costs, .sizes = sizes, .groups = as_given, .capacity = 10},
      {.ranks = 2});
  ASSERT_TRUE(deal.has_value());
  EXPECT_EQ(std::ranges::max(deal->costs), 64);
}

TEST(BalanceWithinTest, WhatCannotBeMeantIsNamed) {
  const Sizes sizes = {8, 3};
  const Costs costs = squares(sizes);
  const auto refusal = [&](const Groups& groups, std::uint64_t capacity) {
    const auto deal = balance_within({.costs = costs,
                                      .sizes = sizes,
                                      .groups = groups,
                                      .capacity = capacity},
                                     {.ranks = 2});
    return deal ? "" : deal.error().message();
  };
  EXPECT_EQ(refusal({0, 2}, 10),
            "item 1 is in group 2; there are 2 groups, of at most 10 each");
  EXPECT_EQ(refusal({0, 0}, 10),
            "item 1 is in group 0; there are 2 groups, of at most 10 each");
  EXPECT_EQ(refusal({0}, 10),
            "costs, sizes and groups of different numbers of items");
  EXPECT_EQ(refusal({0, 1}, 10), "");
}

RC_GTEST_PROP(BalanceWithinProperty, KeepsToTheCapacityAndIsNeverSlower, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto micro_batches = *rc::gen::inRange<std::uint32_t>(1, 4);
  const std::uint32_t groups = ranks * micro_batches;
  const auto sizes =
      *rc::gen::container<Sizes>(*rc::gen::inRange<std::size_t>(groups, 80),
                                 rc::gen::inRange<std::uint64_t>(1, 60));
  Groups as_given(sizes.size());
  Sizes held(groups);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    as_given[i] = static_cast<std::uint32_t>(i % groups);
    held[as_given[i]] += sizes[i];
  }
  const std::uint64_t capacity = std::ranges::max(held);
  const std::uint64_t most =
      *rc::gen::arbitrary<bool>() ? 0 : (sizes.size() + groups - 1) / groups;
  const Costs costs = squares(sizes);

  const auto deal =
      balance_within({.costs = costs,
                      .sizes = sizes,
                      .groups = as_given,
                      .capacity = capacity,
                      .most_items = most},
                     {.ranks = ranks, .micro_batches = micro_batches});
  RC_ASSERT(deal.has_value());
  Costs before(groups);
  Costs after(groups);
  Sizes holds(groups);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    before[as_given[i]] += costs[i];
    after.at(deal->group_of[i]) += costs[i];
    holds[deal->group_of[i]] += sizes[i];
  }
  RC_ASSERT(after == deal->costs);  // Whole numbers: sums are exact.
  RC_ASSERT(std::ranges::max(holds) <= capacity);
  RC_ASSERT(std::ranges::min(holds) > 0U);
  for (std::uint32_t group = 0; most != 0 && group < groups; ++group) {
    RC_ASSERT(std::ranges::count(deal->group_of, group) <=
              static_cast<std::ptrdiff_t>(most));
  }
  RC_ASSERT(std::ranges::max(after) <= std::ranges::max(before));
}

}  // namespace
}  // namespace leat
