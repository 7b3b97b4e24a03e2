#include "leat/plan/token_budget.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

using Lengths = std::vector<std::uint64_t>;
using Buckets = std::vector<std::uint16_t>;
using Bins = std::vector<std::vector<std::uint32_t>>;

Bins bins_of(const BudgetedSteps& steps) {
  Bins bins;
  std::uint64_t begin = 0;
  for (const std::uint64_t end : steps.ends) {
    bins.emplace_back(
        steps.samples.begin() + static_cast<std::ptrdiff_t>(begin),
        steps.samples.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return bins;
}

Bins filled(const Lengths& lengths, const Buckets& buckets,
            const TokenBudgetOptions& options) {
  const auto steps = fill_steps({lengths, buckets}, options);
  if (!steps) {
    ADD_FAILURE() << steps.error().message();
    return {};
  }
  return bins_of(*steps);
}

TEST(TokenBudgetTest, SumsAreFilledByBestFit) {
  EXPECT_EQ(filled({6, 5, 4, 3}, {}, {.max_tokens = 10, .shuffles = false}),
            (Bins{{0, 2}, {1, 3}}));
}

TEST(TokenBudgetTest, PaddedMicroBatchesHaveEquallyManyOfABucket) {
  // The longest of the first bucket is 3, of the second 10.
  const TokenBudgetOptions options = {
      .max_tokens = 20, .count = TokenCount::kPadded, .shuffles = false};
  EXPECT_EQ(filled({3, 10, 1, 2, 9, 1, 1, 1, 2, 7, 8},
                   {0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1}, options),
            (Bins{{0, 2, 3, 5, 6, 7}, {8, 1}, {4, 9}, {10}}));
}

TEST(TokenBudgetTest, WhatFillsNoStepJoinsTheNextBucket) {
  const TokenBudgetOptions options = {.max_tokens = 4,
                                      .count = TokenCount::kPadded,
                                      .micro_batches = 2,
                                      .shuffles = false};
  // Eight of length 1 make a step, and two do not.
  Lengths lengths(10, 1);
  lengths.insert(lengths.end(), {2, 2});
  Buckets buckets(10, 0);
  buckets.insert(buckets.end(), {1, 1});
  EXPECT_EQ(filled(lengths, buckets, options),
            (Bins{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}, {10, 11}}));
}

TEST(TokenBudgetTest, ManyThatFillNoStepMakeOneOfTheirOwn) {
  const TokenBudgetOptions options = {.max_tokens = 8,
                                      .count = TokenCount::kPadded,
                                      .micro_batches = 2,
                                      .shuffles = false};
  // Seven of length 1: in the next bucket they would take nearly two steps.
  Lengths lengths(7, 1);
  lengths.insert(lengths.end(), {4, 4, 4, 4});
  Buckets buckets(7, 0);
  buckets.insert(buckets.end(), {1, 1, 1, 1});
  EXPECT_EQ(filled(lengths, buckets, options),
            (Bins{{0, 1, 2, 3}, {4, 5, 6}, {7, 8}, {9, 10}}));
}

TEST(TokenBudgetTest, PaddedStepsShareWhatTheLastWouldLack) {
  const TokenBudgetOptions options = {.max_tokens = 8,
                                      .count = TokenCount::kPadded,
                                      .micro_batches = 2,
                                      .shuffles = false};
  // Eight fill a step, and two are left: two steps of six and four.
  EXPECT_EQ(filled(Lengths(10, 2), {}, options),
            (Bins{{0, 1, 2}, {3, 4, 5}, {6, 7}, {8, 9}}));
  // One is left.
  EXPECT_EQ(filled(Lengths(9, 2), {}, options).size(), 4U);
}

TEST(TokenBudgetTest, APaddedWindowThatIsNotTheLastHasFullStepsOnly) {
  const TokenBudgetOptions options = {.max_tokens = 4,
                                      .count = TokenCount::kPadded,
                                      .is_last = false,
                                      .shuffles = false};
  EXPECT_EQ(filled({1, 1, 1, 1, 1, 2, 2, 2}, {0, 0, 0, 0, 0, 1, 1, 1}, options),
            (Bins{{0, 1, 2, 3}, {5, 6}}));
}

TEST(TokenBudgetTest, TheLastStepIsWholeIfSamplesSuffice) {
  const TokenBudgetOptions options = {
      .max_tokens = 10, .micro_batches = 4, .shuffles = false};
  // One full micro-batch is divided.
  EXPECT_EQ(filled({1, 1, 1, 1, 1}, {}, options),
            (Bins{{0}, {2}, {3, 4}, {1}}));
  // One sample is left: three come from the step before it.
  const Bins bins = filled({4, 4, 4, 4, 4, 4, 4, 4, 4}, {}, options);
  EXPECT_EQ(bins.size(), 8U);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(bins[i].size(), 1U);
  // Nothing can be lent.
  EXPECT_EQ(filled({9, 9, 9, 9, 9}, {}, options).size(), 5U);
}

TEST(TokenBudgetTest, AWindowThatIsNotTheLastLeavesSamplesForTheNext) {
  const TokenBudgetOptions options = {.max_tokens = 10,
                                      .micro_batches = 2,
                                      .is_last = false,
                                      .shuffles = false};
  EXPECT_EQ(filled({9, 9, 9}, {}, options).size(), 2U);
  EXPECT_EQ(filled({1, 1, 1}, {}, options), Bins());
}

TEST(TokenBudgetTest, NothingMakesNoSteps) {
  EXPECT_EQ(filled({}, {}, {.max_tokens = 10}), Bins());
  EXPECT_EQ(filled({0, 0}, {}, {.max_tokens = 2}).size(), 1U);  // Empty ones.
}

TEST(TokenBudgetTest, WhatCannotBeMeantIsNamed) {
  const auto refusal = [](const Lengths& lengths, const Buckets& buckets,
                          const TokenBudgetOptions& options) {
    const auto steps = fill_steps({lengths, buckets}, options);
    return steps ? "" : steps.error().message();
  };
  EXPECT_EQ(refusal({3, 11}, {}, {.max_tokens = 10}),
            "sample 1 of the window has 11 tokens, and a micro-batch at most "
            "10");
  EXPECT_EQ(refusal({1}, {}, {}),
            "a budget of 0 tokens; it is 1 to 2147483647");
  EXPECT_EQ(refusal({1}, {}, {.max_tokens = 1, .micro_batches = 0}),
            "a step of 0 micro-batches; it has 1 to 2147483647");
  EXPECT_EQ(refusal({1}, {0, 1}, {.max_tokens = 1}),
            "buckets of 2 samples, and lengths of 1");
  EXPECT_NE(refusal({~std::uint64_t{0}}, {}, {.max_tokens = 10}), "");
}

/// An epoch's order is a part of saved states.
TEST(TokenBudgetTest, TheOrderOfASeedIsPinned) {
  Lengths lengths(12);
  std::iota(lengths.begin(), lengths.end(), 1);
  const TokenBudgetOptions options = {
      .max_tokens = 20, .micro_batches = 2, .seed = 7, .stream = 1};
  EXPECT_EQ(filled(lengths, {}, options),
            (Bins{{5, 6}, {10}, {11}, {9}, {7, 8}, {0, 1, 2, 3, 4}}));
}

// --- any window -------------------------------------------------------------

struct Window {
  Lengths lengths;
  Buckets buckets;
  TokenBudgetOptions options;
};

Window some_window() {
  Window window;
  window.lengths = *rc::gen::container<Lengths>(
      *rc::gen::inRange<std::size_t>(0, 300),
      rc::gen::map(rc::gen::inRange(0, 10), [](int root) {
        return static_cast<std::uint64_t>(root * root);
      }));
  if (*rc::gen::arbitrary<bool>()) {
    for (const std::uint64_t length : window.lengths) {
      window.buckets.push_back(static_cast<std::uint16_t>(length / 25));
    }
  }
  window.options = {
      .max_tokens = *rc::gen::inRange<std::uint64_t>(81, 400),
      .count = *rc::gen::element(TokenCount::kSum, TokenCount::kPadded),
      .max_samples = *rc::gen::inRange<std::uint32_t>(0, 9),
      .micro_batches = *rc::gen::inRange<std::uint64_t>(1, 13),
      .shuffles = *rc::gen::arbitrary<bool>(),
      .seed = *rc::gen::arbitrary<std::uint64_t>()};
  return window;
}

RC_GTEST_PROP(TokenBudgetProperty, EachSampleComesOnceWithinTheBudget, ()) {
  const Window window = some_window();
  const auto steps =
      fill_steps({window.lengths, window.buckets}, window.options);
  RC_ASSERT(steps.has_value());
  std::vector<std::uint32_t> sorted = steps->samples;
  std::ranges::sort(sorted);
  std::vector<std::uint32_t> all(window.lengths.size());
  std::iota(all.begin(), all.end(), 0U);
  RC_ASSERT(sorted == all);

  const bool is_padded = window.options.count == TokenCount::kPadded;
  for (const auto& bin : bins_of(*steps)) {
    RC_ASSERT(!bin.empty());
    if (window.options.max_samples != 0) {
      RC_ASSERT(bin.size() <= window.options.max_samples);
    }
    std::uint64_t sum = 0;
    std::uint64_t longest = 0;
    for (const std::uint32_t i : bin) {
      sum += window.lengths[i];
      longest = std::max(longest, window.lengths[i]);
    }
    RC_ASSERT((is_padded ? longest * bin.size() : sum) <=
              window.options.max_tokens);
  }
}

RC_GTEST_PROP(TokenBudgetProperty, JoinedMicroBatchesKeepToTheirBudgets, ()) {
  Window window = some_window();
  window.options.count = TokenCount::kPadded;
  const auto steps =
      fill_steps({window.lengths, window.buckets}, window.options);
  RC_ASSERT(steps.has_value());
  const Bins bins = bins_of(*steps);
  const std::size_t each = window.options.micro_batches;
  for (std::size_t begin = 0; begin < bins.size(); begin += each) {
    const std::size_t end = std::min(begin + each, bins.size());
    std::uint64_t samples = 0;
    std::uint64_t longest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      samples += bins[i].size();
      for (const std::uint32_t s : bins[i])
        longest = std::max(longest, window.lengths[s]);
    }
    RC_ASSERT(samples * longest <= window.options.max_tokens * (end - begin));
  }
}

RC_GTEST_PROP(TokenBudgetProperty, AllStepsAreWholeUnlessNothingCanBeLent, ()) {
  const Window window = some_window();
  const auto steps =
      fill_steps({window.lengths, window.buckets}, window.options);
  RC_ASSERT(steps.has_value());
  const Bins bins = bins_of(*steps);
  if (bins.size() % window.options.micro_batches == 0) return;
  // Then all micro-batches have one sample.
  for (const auto& bin : bins) RC_ASSERT(bin.size() == 1U);
}

RC_GTEST_PROP(TokenBudgetProperty, SeedsDrawTheOrderOfTheSameSteps, ()) {
  Window window = some_window();
  window.options.count = TokenCount::kPadded;
  const auto steps_of = [&](bool shuffles) {
    window.options.shuffles = shuffles;
    const auto made =
        fill_steps({window.lengths, window.buckets}, window.options);
    RC_ASSERT(made.has_value());
    const Bins bins = bins_of(*made);
    std::multiset<std::vector<std::uint32_t>> steps;
    for (std::size_t i = 0; i < bins.size();
         i += window.options.micro_batches) {
      std::vector<std::uint32_t> joined;
      for (std::size_t j = i;
           j < std::min(bins.size(), i + window.options.micro_batches); ++j) {
        joined.insert(joined.end(), bins[j].begin(), bins[j].end());
      }
      steps.insert(joined);
    }
    return steps;
  };
  RC_ASSERT(steps_of(true) == steps_of(false));
}

}  // namespace
}  // namespace leat
