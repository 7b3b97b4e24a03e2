#include "leat/plan/solar.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "leat/plan/steps.h"

namespace leat {
namespace {

using Choice = SolarOptions::EpochOrderChoice;

SolarOptions solar_ladder(Dealing dealing,
                          Choice choice = Choice::kAsNumbered) {
  return {.samples = 4000,
          .seed = 3,
          .global_batch = 160,
          .nodes = 4,
          .epochs = 12,
          .capacity_items = 300,
          .dealing = dealing,
          .epoch_order = choice};
}

struct SolarSums {
  std::uint64_t loads = 0;
  std::uint64_t uneven = 0;
  std::uint64_t largest = 0;
};

/// Loads from the second epoch on: in the first, all are.
SolarSums run_solar(const SolarOptions& options) {
  const auto epochs = simulate_solar(options, nullptr);
  EXPECT_TRUE(epochs.has_value());
  SolarSums sums;
  for (std::size_t i = 1; i < epochs->size(); ++i) {
    sums.loads += (*epochs)[i].loads;
    sums.uneven += (*epochs)[i].uneven_loads;
    sums.largest = std::max(sums.largest, (*epochs)[i].largest_local_batch);
  }
  return sums;
}

TEST(SolarTest, EachRungOfTheLadderLoadsLessOrMoreEvenly) {
  const SolarSums runs = run_solar(solar_ladder(Dealing::kRuns));
  const SolarSums runs_ordered =
      run_solar(solar_ladder(Dealing::kRuns, Choice::kFewestLoads));
  const SolarSums holders = run_solar(solar_ladder(Dealing::kHolders));
  const SolarSums balanced = run_solar(solar_ladder(Dealing::kBalanced));

  EXPECT_LE(runs_ordered.loads, runs.loads * 101 / 100);
  EXPECT_LT(holders.loads, runs.loads);
  EXPECT_LE(balanced.loads, holders.loads);
  EXPECT_LT(balanced.uneven, holders.uneven);
  // Evenly: at most one apart in each of the 11 * 25 steps.
  EXPECT_LE(balanced.uneven, 11u * 25u);
  EXPECT_EQ(holders.largest, 40u);
  EXPECT_GT(balanced.largest, 40u);
}

// Four caches of 300 under samples that follow their holder are one of 1,200.
TEST(SolarTest, DealingToHoldersMakesOneCacheOfAll) {
  const double loads =
      static_cast<double>(run_solar(solar_ladder(Dealing::kBalanced)).loads);

  EXPECT_NEAR(loads / (11 * 4000), 1 - 1200.0 / 4000, .01);
}

TEST(SolarTest, AnOrderOfEpochsIsOneOfAllEpochs) {
  const auto epochs = simulate_solar(
      solar_ladder(Dealing::kHolders, Choice::kFewestLoads), nullptr);

  std::set<std::uint64_t> seen;
  for (const SolarEpoch& epoch : *epochs) seen.insert(epoch.epoch);
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_EQ(*seen.rbegin(), 11u);
}

// However it is dealt, a step trains on the same samples.
RC_GTEST_PROP(SolarProperty, EveryGlobalBatchKeepsItsSamples, ()) {
  SolarOptions options;
  options.samples = *rc::gen::inRange<std::uint64_t>(1, 300);
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.nodes = *rc::gen::inRange<std::uint32_t>(1, 6);
  options.global_batch =
      options.nodes * *rc::gen::inRange<std::uint64_t>(1, 20);
  options.epochs = *rc::gen::inRange<std::uint64_t>(1, 5);
  options.capacity_items = *rc::gen::inRange<std::uint64_t>(0, 100);
  options.dealing =
      *rc::gen::element(Dealing::kRuns, Dealing::kHolders, Dealing::kBalanced);
  options.epoch_order =
      *rc::gen::element(Choice::kAsNumbered, Choice::kFewestLoads);

  std::uint64_t steps = 0;
  const auto epochs = simulate_solar(
      options, [&](std::uint64_t epoch, std::uint64_t step,
                   const std::vector<std::vector<SampleId>>& dealt) {
        ++steps;
        std::multiset<SampleId> got;
        for (const auto& node : dealt) got.insert(node.begin(), node.end());
        std::multiset<SampleId> expected;
        const EpochOrder order(options.samples, {.seed = options.seed}, nullptr,
                               epoch);
        const std::uint64_t begin = step * options.global_batch;
        const std::uint64_t end =
            std::min(begin + options.global_batch, options.samples);
        for (std::uint64_t p = begin; p < end; ++p) {
          expected.insert(order.at(p));
        }
        RC_ASSERT(got == expected);
      });

  RC_ASSERT(epochs.has_value());
  RC_ASSERT(steps ==
            options.epochs * ((options.samples + options.global_batch - 1) /
                              options.global_batch));
}

TEST(SolarTest, RefusesABatchThatDoesNotDivide) {
  EXPECT_FALSE(
      simulate_solar({.samples = 10, .global_batch = 5, .nodes = 2}, nullptr)
          .has_value());
}

// Each part of it hears a stop: the order that is found, and the run.
TEST(SolarTest, StopsWhenItIsTold) {
  std::stop_source stop;
  stop.request_stop();
  for (const Choice choice : {Choice::kAsNumbered, Choice::kFewestLoads}) {
    const auto stopped = simulate_solar(solar_ladder(Dealing::kHolders, choice),
                                        nullptr, stop.get_token());
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  }
}

TEST(SolarTest, StopsInTheMiddleOfAnEpoch) {
  std::stop_source stop;
  std::uint64_t steps = 0;
  const auto stopped = simulate_solar(
      solar_ladder(Dealing::kHolders),
      [&](std::uint64_t, std::uint64_t, const auto&) {
        if (++steps == 3) stop.request_stop();
      },
      stop.get_token());

  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(steps, 3u);
}

}  // namespace
}  // namespace leat
