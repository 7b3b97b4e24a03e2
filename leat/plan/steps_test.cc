#include "leat/plan/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;

Steps steps_of(const StepOptions& options) {
  auto steps = Steps::make(options);
  EXPECT_TRUE(steps) << steps.error().message();
  return *steps;
}

/// The number of samples of each of `world` ranks in `step`.
std::vector<std::uint64_t> sizes(StepOptions options, std::uint32_t world,
                                 std::uint64_t step) {
  std::vector<std::uint64_t> all;
  for (std::uint32_t r = 0; r < world; ++r) {
    options.rank = {r, world};
    all.push_back(steps_of(options).slice(step).size());
  }
  return all;
}

using Sizes = std::vector<std::uint64_t>;

TEST(StepsTest, EachRankTakesItsRunOfAWholeStep) {
  const Steps steps =
      steps_of({.samples = 100, .global_batch = 12, .rank = {2, 3}});

  EXPECT_EQ(steps.slice(0), (StepSlice{8, 12}));
  EXPECT_EQ(steps.slice(7), (StepSlice{92, 96}));
}

TEST(StepsTest, AKeptTailIsDealtEvenly) {
  EXPECT_EQ(sizes({.samples = 100, .global_batch = 12}, 3, 8),
            (Sizes{2, 1, 1}));
  EXPECT_EQ(sizes({.samples = 2, .global_batch = 12}, 3, 0), (Sizes{1, 1, 0}));
}

TEST(StepsTest, ADroppedTailIsLeftOut) {
  const Steps steps =
      steps_of({.samples = 100, .global_batch = 12, .tail = Tail::kDrop});

  EXPECT_EQ(steps.count(), 8u);
  EXPECT_EQ(steps.position_after(7), 96u);
}

TEST(StepsTest, APaddedTailGoesOnPastTheEnd) {
  const StepOptions options{
      .samples = 100, .global_batch = 12, .tail = Tail::kPad};

  EXPECT_EQ(sizes(options, 3, 8), (Sizes{4, 4, 4}));
  EXPECT_EQ(steps_of(options).slice(8), (StepSlice{96, 108}));
  EXPECT_EQ(steps_of(options).position_after(8), 100u);
}

TEST(StepsTest, StepsAreCountedFromWhereItStarts) {
  const Steps steps =
      steps_of({.samples = 100, .start = 7, .global_batch = 10});

  EXPECT_EQ(steps.count(), 10u);
  EXPECT_EQ(steps.slice(0), (StepSlice{7, 17}));
  EXPECT_EQ(steps.slice(9), (StepSlice{97, 100}));
  EXPECT_EQ(steps.position_after(9), 100u);
}

TEST(StepsTest, NothingIsLeftAtTheEndOrOfAnEmptyEpoch) {
  for (const Tail tail : {Tail::kDrop, Tail::kKeep, Tail::kPad}) {
    EXPECT_EQ(
        steps_of({.samples = 9, .start = 9, .global_batch = 3, .tail = tail})
            .count(),
        0u);
    EXPECT_EQ(steps_of({.global_batch = 3, .tail = tail}).count(), 0u);
  }
  // The rest of an epoch may be less than a step: it is over.
  EXPECT_EQ(
      steps_of(
          {.samples = 9, .start = 8, .global_batch = 3, .tail = Tail::kDrop})
          .count(),
      0u);
}

struct Refused {
  StepOptions options;
  std::string says;
};

TEST(StepsTest, RefusesWhatCannotBeAndSaysWhatToChange) {
  const std::vector<Refused> cases = {
      {{.samples = 9, .global_batch = 0}, "at least one sample"},
      {{.samples = 9, .global_batch = 10, .rank = {0, 4}}, "take 8 or 12"},
      {{.samples = 9, .global_batch = 2, .rank = {0, 4}}, "take 4"},
      {{.samples = 9, .global_batch = 8, .rank = {4, 4}}, "count from 0"},
      {{.samples = 9, .global_batch = 8, .rank = {0, 0}}, "at least 1"},
      {{.samples = 9, .start = 10, .global_batch = 8}, "past the end"},
      {{.samples = 9, .global_batch = 10, .tail = Tail::kDrop},
       "drop_last=False"},
      {{.samples = Steps::kMax + 1, .global_batch = 8}, "past 2^48"},
      {{.samples = 9, .global_batch = Steps::kMax + 1}, "past 2^48"},
  };
  for (const Refused& refused : cases) {
    const auto steps = Steps::make(refused.options);

    ASSERT_FALSE(steps) << refused.says;
    EXPECT_EQ(steps.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(steps.error().message(), HasSubstr(refused.says));
  }
}

// For every tail: ranks' runs lie end to end, differ by at most one, and cover
// exactly what the tail promises.
RC_GTEST_PROP(StepsProperty, RunsLieEndToEnd, ()) {
  const auto world = *rc::gen::inRange<std::uint32_t>(1, 20);
  const auto per_rank = *rc::gen::inRange<std::uint64_t>(1, 9);
  const auto samples = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto tail = *rc::gen::element(Tail::kDrop, Tail::kKeep, Tail::kPad);
  const std::uint64_t batch = world * per_rank;
  const auto start = *rc::gen::inRange<std::uint64_t>(0, samples + 1);
  RC_PRE(tail != Tail::kDrop || samples == 0 || samples >= batch);

  std::uint64_t next = start;
  const auto make = [&](std::uint32_t rank) {
    return *Steps::make({samples, start, batch, {rank, world}, tail});
  };
  const std::uint64_t count = make(0).count();
  for (std::uint64_t step = 0; step < count; ++step) {
    const std::uint64_t first_size = make(0).slice(step).size();
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const StepSlice slice = make(rank).slice(step);
      RC_ASSERT(slice.begin == next);
      RC_ASSERT(slice.size() <= first_size && slice.size() + 1 >= first_size);
      next = slice.end;
    }
    RC_ASSERT(make(0).position_after(step) == std::min(next, samples));
  }
  const std::uint64_t rest = samples - start;
  const std::uint64_t whole = rest / batch * batch;
  if (tail == Tail::kKeep) RC_ASSERT(next == samples);
  if (tail == Tail::kDrop) RC_ASSERT(next == start + whole);
  if (tail == Tail::kPad) {
    RC_ASSERT(next == start + whole + (rest == whole ? 0 : batch));
  }
}

}  // namespace
}  // namespace leat
