#include "leat/profile/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// With workers: 100 ms of compute, 150 of preparation on busy cores, 250 from
/// a store whose reads are half latency.
const MeasuredStep kAll = {.compute = 0.1,
                           .interconnect = 0.02,
                           .preparation = 0.03,
                           .fetch = 0.1,
                           .warm_supply = 0.15,
                           .cold_supply = 0.25,
                           .preparation_cpu = 0.15,
                           .cores = 2,
                           .latency_share = 0.5,
                           .devices = 2};

StepModel model_for(const MeasuredStep& measured) {
  Result<StepModel> model = StepModel::of(measured);
  EXPECT_TRUE(model);
  return *model;
}

const Curve& curve_of(const std::vector<Curve>& curves, Knob knob) {
  return *std::ranges::find(curves, knob, &Curve::knob);
}

TEST(WhatIfTest, EveryCurveGoesThroughWhatWasMeasured) {
  const StepModel model = model_for(kAll);

  const std::vector<Curve> curves = what_if_curves(model);

  ASSERT_EQ(curves.size(), 8u);
  for (const Curve& curve : curves) {
    if (curve.knob == Knob::kNodes || curve.knob == Knob::kWorkers) continue;
    const double here = curve.knob == Knob::kCached    ? 0
                        : curve.knob == Knob::kDevices ? 2
                                                       : 1;
    const auto at = std::ranges::find(curve.points, here, &CurvePoint::value);
    ASSERT_NE(at, curve.points.end()) << to_string(curve.knob);
    EXPECT_NEAR(at->step.seconds(), 0.25, 1e-9) << to_string(curve.knob);
    EXPECT_NEAR(at->speedup, 1, 1e-9) << to_string(curve.knob);
  }
}

/// Steps of all kinds of loaders, with noise in their parts.
MeasuredStep drawn(std::mt19937& random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  const auto is = [&] { return std::bernoulli_distribution(0.5)(random); };
  MeasuredStep step{.compute = between(0.005, 0.1),
                    .interconnect = is() ? between(0, 0.02) : 0,
                    .preparation = between(0, 0.1),
                    .fetch = is() ? between(0, 0.1) : 0,
                    .warm_supply = between(0, 0.2),
                    .is_pipelined = is(),
                    .cores = 2};
  step.cold_supply = step.warm_supply + between(0, 0.2);
  if (!step.is_pipelined && is()) step.workers = is() ? 0 : 2;
  if (is()) step.preparation_cpu = between(0, 0.3);
  if (is()) step.latency_share = between(0, 1);
  return step;
}

TEST(WhatIfTest, TurningAKnobTheGoodWayNeverHurts) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 1000; ++draw) {
    for (const Curve& curve : what_if_curves(
             draw == 0 ? model_for(kAll) : model_for(drawn(random)))) {
      const double sign = curve.knob == Knob::kLatency ? -1 : 1;
      for (std::size_t i = 1; i < curve.points.size(); ++i) {
        ASSERT_GE(
            sign * (curve.points[i].speedup - curve.points[i - 1].speedup),
            -1e-9)
            << draw << ": " << to_string(curve.knob) << " at "
            << curve.points[i].value;
      }
    }
  }
}

TEST(RemovalsTest, EachChangeSavesTimeAndIsOneThatTheLoaderCanMake) {
  std::mt19937 random(8);
  for (int draw = 0; draw < 1000; ++draw) {
    const MeasuredStep measured = drawn(random);
    const StepModel model = model_for(measured);
    double before = model.predict(model.measured_setting()).seconds();
    std::vector<StepPart> parts;
    for (const Removal& removal : removals(model)) {
      parts.push_back(removal.part);
      for (const Change& change : removal.changes) {
        ASSERT_LE(change.step_seconds, before - removal.seconds / 2 + 1e-9)
            << draw << ": " << to_string(change.knob);
        if (change.knob == Knob::kLoadAhead) {
          ASSERT_FALSE(measured.is_pipelined) << draw;
          ASSERT_EQ(measured.workers.value_or(0), 0u) << draw;
        }
        if (change.knob == Knob::kWorkers) {
          ASSERT_TRUE(measured.workers) << draw;
        }
      }
      if (!removal.changes.empty()) {
        before = removal.changes.front().step_seconds;
      }
    }
  }
}

TEST(RemovalsTest, AStallThatNothingRemovesDoesNotHideTheNext) {
  // Nothing is known of preparation but its time.
  const auto found = removals(model_for({.compute = 0.1,
                                         .preparation = 0.2,
                                         .fetch = 0.1,
                                         .warm_supply = 0.3,
                                         .cold_supply = 0.4,
                                         .is_pipelined = true}));

  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].part, StepPart::kPreparation);
  EXPECT_THAT(found[0].changes, IsEmpty());
  EXPECT_EQ(found[1].part, StepPart::kFetch);
  EXPECT_EQ(found[1].changes.at(0).knob, Knob::kCached);
}

TEST(RemovalsTest, WhereOneBatchTakesLongerThanAStepMoreWorkersMakeThem) {
  // 35 ms a batch in the training's own process, 15 of compute.
  const MeasuredStep alone = {.compute = 0.015,
                              .preparation = 0.02,
                              .fetch = 0.015,
                              .warm_supply = 0.02,
                              .cold_supply = 0.035,
                              .workers = 0};

  const auto found = removals(model_for(alone));

  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found[0].changes.size(), 1u);
  EXPECT_EQ(found[0].part, StepPart::kPreparation);
  EXPECT_EQ(found[0].changes[0].knob, Knob::kWorkers);
  EXPECT_EQ(found[0].changes[0].value, 2);
  EXPECT_THAT(found[0].changes[0].step_seconds, DoubleNear(0.0175, 1e-9));
  ASSERT_EQ(found[1].changes.size(), 2u);
  EXPECT_EQ(found[1].changes[0].knob, Knob::kCached);
  EXPECT_EQ(found[1].changes[1].knob, Knob::kWorkers);
  EXPECT_EQ(found[1].changes[1].value, 3);
  EXPECT_THAT(found[1].changes[1].step_seconds, DoubleNear(0.015, 1e-9));
}

TEST(WhatIfTest, WhatWasNotMeasuredHasNoCurveAndSaysWhy) {
  const auto curves = what_if_curves(model_for({.compute = 0.1,
                                                .preparation = 0.1,
                                                .warm_supply = 0.1,
                                                .cold_supply = 0.1}));

  for (const Knob knob : {Knob::kCores, Knob::kBandwidth, Knob::kLatency,
                          Knob::kDevices, Knob::kNodes}) {
    EXPECT_THAT(curve_of(curves, knob).points, IsEmpty()) << to_string(knob);
    EXPECT_THAT(curve_of(curves, knob).why_not, Not(IsEmpty()));
  }
  EXPECT_THAT(curve_of(curves, Knob::kCached).points, Not(IsEmpty()));
  EXPECT_THAT(curve_of(curves, Knob::kAccelerator).points, Not(IsEmpty()));
}

TEST(RemovalsTest, TheLargestStallGoesFirstByTheSmallestChangeThenTheNext) {
  const StepModel model = model_for(kAll);

  const std::vector<Removal> found = removals(model);

  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].part, StepPart::kFetch);
  EXPECT_THAT(found[0].seconds, DoubleNear(0.1, 1e-9));
  EXPECT_EQ(found[1].part, StepPart::kPreparation);
  EXPECT_EQ(found[2].part, StepPart::kInterconnect);
  EXPECT_THAT(found[2].changes, IsEmpty());

  // Latency alone leaves the half that is bandwidth, and the other way round.
  ASSERT_EQ(found[0].changes.size(), 1u);
  EXPECT_EQ(found[0].changes[0].knob, Knob::kCached);
  EXPECT_THAT(found[0].changes[0].value, DoubleNear(1, 1e-9));

  ASSERT_EQ(found[1].changes.size(), 1u);
  EXPECT_EQ(found[1].changes[0].knob, Knob::kCores);
  EXPECT_THAT(found[1].changes[0].value, DoubleNear(0.15 / 0.1215, 0.01));
  EXPECT_LT(found[1].changes[0].step_seconds, found[0].changes[0].step_seconds);
}

TEST(RemovalsTest, ChangesAreRankedByTheWorkTheyTakeAway) {
  MeasuredStep measured = kAll;
  measured.interconnect = measured.preparation = 0;
  measured.fetch = 0.02;
  measured.warm_supply = 0.02;
  measured.cold_supply = 0.12;
  measured.latency_share = 0.9;

  const std::vector<Removal> found = removals(model_for(measured));

  ASSERT_EQ(found.size(), 1u);
  std::vector<Knob> knobs;
  for (const Change& change : found[0].changes) knobs.push_back(change.knob);
  EXPECT_THAT(knobs, ElementsAre(Knob::kCached, Knob::kLatency));
  EXPECT_THAT(found[0].changes[0].value, DoubleNear(0.19, 0.01));
}

TEST(RemovalsTest, LoadingAheadGoesFirstWhereItHidesTheStall) {
  const std::vector<Removal> found = removals(model_for({.compute = 0.1,
                                                         .preparation = 0.03,
                                                         .fetch = 0.05,
                                                         .warm_supply = 0.03,
                                                         .cold_supply = 0.08}));

  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].changes[0].knob, Knob::kLoadAhead);
  EXPECT_THAT(found[0].changes[0].step_seconds, DoubleNear(0.1, 1e-9));
}

TEST(RemovalsTest, AStepWithoutStallsHasNothingToRemove) {
  EXPECT_THAT(removals(model_for({.compute = 0.1})), IsEmpty());
}

TEST(TurnTest, TurnsOneKnobAfterAnother) {
  WhatIfSetting setting{.devices = 2};

  ASSERT_TRUE(turn(setting, kAll, "cached", 0.5));
  ASSERT_TRUE(turn(setting, kAll, "cores", 3));
  ASSERT_TRUE(turn(setting, kAll, "devices", 4));
  ASSERT_TRUE(turn(setting, kAll, "load_ahead", 1));

  EXPECT_EQ(setting.cached, 0.5);
  EXPECT_EQ(setting.cores, 3);
  EXPECT_EQ(setting.devices, 4u);
  EXPECT_TRUE(setting.loads_ahead);
  EXPECT_EQ(setting.latency, 1);
}

TEST(TurnTest, RefusesWhatCannotBeOrWasNotMeasured) {
  const auto refusal = [](std::string_view knob, double value) {
    WhatIfSetting setting;
    const Result<void> turned = turn(setting, kAll, knob, value);
    EXPECT_FALSE(turned) << knob;
    return turned ? "" : turned.error().message();
  };

  EXPECT_THAT(refusal("ram", 1), HasSubstr("none of load_ahead, cached"));
  EXPECT_THAT(refusal("cached", 1.5), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal("cores", 0), HasSubstr("a multiple above 0"));
  EXPECT_THAT(refusal("latency", NAN), HasSubstr("a multiple above 0"));
  EXPECT_THAT(refusal("devices", 1.5), HasSubstr("a whole number"));
  EXPECT_THAT(refusal("nodes", 2), HasSubstr("--node for each"));
  EXPECT_THAT(refusal("workers", 2), HasSubstr("no worker processes"));
}

}  // namespace
}  // namespace leat
