#include "leat/profile/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

ProfiledRun steady(Condition condition, double seconds, std::size_t ranks = 1) {
  return {condition, std::vector<std::vector<double>>(
                         ranks, std::vector<double>(10, seconds))};
}

/// Steps of `seconds` with a spread of 5 %.
ProfiledRun noisy(Condition condition, double seconds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(seconds, seconds * 0.05);
  std::vector<double> steps(50);
  for (double& step : steps) step = noise(random);
  return {condition, {steps}};
}

const std::vector<ProfiledRun> kAllFive = {
    steady(Condition::kAlone, 0.1), steady(Condition::kNode, 0.15),
    steady(Condition::kNodes, 0.25), steady(Condition::kWarm, 0.3),
    steady(Condition::kCold, 0.5)};

double sum_of(const StepParts& split) {
  double sum = 0;
  for (const MeasuredPart& part : split.parts) sum += part.time.seconds;
  return sum;
}

TEST(SplitStepTest, EachPartIsWhatItsConditionAdds) {
  const auto split = split_step(kAllFive);

  ASSERT_TRUE(split);
  ASSERT_EQ(split->parts.size(), 5u);
  const std::vector<double> expected = {0.1, 0.05, 0.1, 0.05, 0.2};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(split->parts[i].part, static_cast<StepPart>(i));
    EXPECT_THAT(split->parts[i].time.seconds, DoubleNear(expected[i], 1e-12));
    EXPECT_FALSE(split->parts[i].is_tie);
  }
  EXPECT_THAT(split->step.seconds, DoubleNear(0.5, 1e-12));
}

TEST(SplitStepTest, TheSlowestRankIsTheStep) {
  ProfiledRun cold = steady(Condition::kCold, 0.2, 3);
  for (double& step : cold.step_seconds[1]) step = 0.7;

  const auto split = split_step(std::vector<ProfiledRun>{
      steady(Condition::kAlone, 0.1), steady(Condition::kWarm, 0.2), cold});

  ASSERT_TRUE(split);
  EXPECT_THAT(split->step.seconds, DoubleNear(0.7, 1e-12));
  EXPECT_THAT(split->parts.back().time.seconds, DoubleNear(0.5, 1e-12));
}

TEST(SplitStepTest, WithoutAWarmRunPreparationAndFetchAreOnePart) {
  const auto split = split_step(std::vector<ProfiledRun>{
      steady(Condition::kAlone, 0.1), steady(Condition::kCold, 0.4)});

  ASSERT_TRUE(split);
  ASSERT_EQ(split->parts.size(), 2u);
  EXPECT_EQ(split->parts[1].part, StepPart::kInput);
  EXPECT_THAT(split->parts[1].time.seconds, DoubleNear(0.3, 1e-12));
}

TEST(SplitStepTest, AStageHiddenBehindAnotherIsATie) {
  std::vector<ProfiledRun> runs;
  for (std::uint64_t i = 0; i < 5; ++i) {
    runs.push_back(noisy(Condition::kAlone, 0.1, i));
    runs.push_back(noisy(Condition::kWarm, 0.1, 100 + i));
    runs.push_back(noisy(Condition::kCold, 0.3, 200 + i));
  }

  const auto split = split_step(runs);

  ASSERT_TRUE(split);
  EXPECT_TRUE(split->parts[1].is_tie);
  EXPECT_FALSE(split->parts[2].is_tie);
  EXPECT_LT(split->parts[2].time.low, 0.2);
  EXPECT_GT(split->parts[2].time.high, 0.2);
}

TEST(SplitStepTest, TimesThatFallAreLevelledAndStillSum) {
  const auto split = split_step(std::vector<ProfiledRun>{
      steady(Condition::kAlone, 0.20), steady(Condition::kNode, 0.18),
      steady(Condition::kWarm, 0.30), steady(Condition::kCold, 0.28)});

  ASSERT_TRUE(split);
  EXPECT_THAT(split->parts[0].time.seconds, DoubleNear(0.19, 1e-12));
  EXPECT_THAT(split->parts[1].time.seconds, DoubleNear(0, 1e-12));
  EXPECT_TRUE(split->parts[1].is_tie);
  EXPECT_THAT(split->step.seconds, DoubleNear(0.29, 1e-12));
  EXPECT_THAT(sum_of(*split), DoubleNear(0.29, 1e-12));
}

TEST(SplitStepTest, OneOddRunOfThreeDoesNotMoveTheMedian) {
  std::vector<ProfiledRun> runs = kAllFive;
  runs.push_back(steady(Condition::kCold, 0.5));
  runs.push_back(steady(Condition::kCold, 5.0));

  const auto split = split_step(runs);

  ASSERT_TRUE(split);
  EXPECT_THAT(split->step.seconds, DoubleNear(0.5, 1e-12));
  EXPECT_GT(split->step.high, 1.0);
}

TEST(SplitStepTest, TheIntervalHoldsTheTruthAboutAsOftenAsItSays) {
  int held = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<ProfiledRun> runs;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(trial) + i;
      runs.push_back(noisy(Condition::kAlone, 0.1, seed));
      runs.push_back(noisy(Condition::kCold, 0.2, seed + 500));
    }
    const auto split = split_step(runs, {.resamples = 200});
    ASSERT_TRUE(split);
    const Estimate& input = split->parts[1].time;
    held += input.low <= 0.1 && 0.1 <= input.high ? 1 : 0;
  }
  EXPECT_GE(held, kTrials * 88 / 100);
}

TEST(SplitStepTest, TheSameSeedGivesTheSameIntervals) {
  const std::vector<ProfiledRun> runs = {noisy(Condition::kAlone, 0.1, 1),
                                         noisy(Condition::kCold, 0.2, 2)};

  const auto one = split_step(runs, {.seed = 7});
  const auto two = split_step(runs, {.seed = 7});

  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->step.low, two->step.low);
  EXPECT_EQ(one->step.high, two->step.high);
}

TEST(SplitStepTest, RefusesWhatCannotBeSubtracted) {
  const auto message_of = [](const std::vector<ProfiledRun>& runs) {
    const auto split = split_step(runs);
    return split ? std::string("accepted") : split.error().message();
  };
  EXPECT_THAT(message_of({steady(Condition::kCold, 1)}),
              HasSubstr("\"alone\""));
  EXPECT_THAT(message_of({steady(Condition::kAlone, 1)}),
              HasSubstr("\"cold\""));
  EXPECT_THAT(message_of({{Condition::kAlone, {{}}}}), HasSubstr("no step"));
  EXPECT_THAT(message_of({{Condition::kAlone, {}}}), HasSubstr("no step"));
  EXPECT_THAT(message_of({{Condition::kAlone, {{1, 2}, {1}}}}),
              HasSubstr("2 and 1 steps"));
  EXPECT_THAT(message_of({{Condition::kAlone, {{1, 0}}}}), HasSubstr("0 s"));
}

}  // namespace
}  // namespace leat
