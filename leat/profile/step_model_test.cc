#include "leat/profile/step_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;

/// Compute 100 ms, then 40 ms of preparation and 60 ms of fetching, one after
/// another: a loader without workers.
MeasuredStep one_after_another() {
  return {.compute = 0.1,
          .preparation = 0.04,
          .fetch = 0.06,
          .warm_supply = 0.04,
          .cold_supply = 0.1};
}

/// The same with workers: 150 ms of preparation and 250 ms from the store; 100
/// ms of these hide behind compute.
MeasuredStep loads_ahead() {
  return {.compute = 0.1,
          .preparation = 0.05,
          .fetch = 0.1,
          .warm_supply = 0.15,
          .cold_supply = 0.25};
}

StepModel model_of(const MeasuredStep& measured) {
  Result<StepModel> model = StepModel::of(measured);
  EXPECT_TRUE(model);
  return *model;
}

void expect_step(const PredictedStep& step, double compute, double preparation,
                 double fetch) {
  EXPECT_NEAR(step.compute, compute, 1e-9);
  EXPECT_NEAR(step.preparation, preparation, 1e-9);
  EXPECT_NEAR(step.fetch, fetch, 1e-9);
}

TEST(StepModelTest, BothMeasuredRunsAreMetExactly) {
  for (const MeasuredStep& measured : {one_after_another(), loads_ahead()}) {
    const StepModel model = model_of(measured);
    WhatIfSetting setting = model.measured_setting();

    expect_step(model.predict(setting), 0.1, measured.preparation,
                measured.fetch);
    setting.cached = 1;
    expect_step(model.predict(setting), 0.1, measured.preparation, 0);
  }
}

TEST(StepModelTest, HalfTheBytesCachedHalvesTheTimeThatFetchingTakes) {
  WhatIfSetting half{.cached = 0.5};

  expect_step(model_of(one_after_another()).predict(half), 0.1, 0.04, 0.03);
  expect_step(model_of(loads_ahead()).predict(half), 0.1, 0.05, 0.05);
}

TEST(StepModelTest, APipelinedLoaderFetchesBehindItsPreparation) {
  MeasuredStep measured = loads_ahead();
  measured.is_pipelined = true;
  const StepModel model = model_of(measured);

  expect_step(model.predict({.cached = 0.2}), 0.1, 0.05, 0.05);
  expect_step(model.predict({.cached = 0.4}), 0.1, 0.05, 0);
  expect_step(model.predict({.cached = 0.9}), 0.1, 0.05, 0);
}

TEST(StepModelTest, AFasterAcceleratorBringsOutWhatWasHidden) {
  MeasuredStep measured = loads_ahead();
  measured.preparation = measured.fetch = 0;
  measured.warm_supply = 0.06;
  measured.cold_supply = 0.09;
  const StepModel model = model_of(measured);

  const PredictedStep step = model.predict({.accelerator = 4});

  expect_step(step, 0.025, 0.035, 0.03);
}

TEST(StepModelTest, LoadingAheadHidesWhatFitsBehindCompute) {
  expect_step(model_of(one_after_another()).predict({.loads_ahead = true}), 0.1,
              0, 0);
}

TEST(StepModelTest, CoresHelpWhereTheyWereBusyAndElseOnlyHurtWhenTooFew) {
  MeasuredStep busy = loads_ahead();
  busy.cores = 2;
  busy.preparation_cpu = 0.28;  // Out of 2 * 0.15.
  MeasuredStep waiting = busy;
  waiting.preparation_cpu = 0.1;

  EXPECT_NEAR(model_of(busy).predict({.cached = 1, .cores = 2}).preparation, 0,
              1e-9);
  EXPECT_NEAR(model_of(busy).predict({.cached = 1, .cores = 0.5}).preparation,
              0.2, 1e-9);
  EXPECT_NEAR(model_of(waiting).predict({.cached = 1, .cores = 2}).preparation,
              0.05, 1e-9);
  EXPECT_NEAR(
      model_of(waiting).predict({.cached = 1, .cores = 0.25}).preparation, 0.1,
      1e-9);
}

/// Two processes, each of which takes 200 ms for a batch in memory, all of it
/// CPU time, and 600 from the store; training takes next to nothing.
MeasuredStep two_workers(double cores) {
  return {.compute = 0.001,
          .preparation = 0.2 / cores,
          .fetch = 0.3 - 0.2 / cores,
          .warm_supply = 0.2 / cores,
          .cold_supply = 0.3,
          .workers = 2,
          .preparation_cpu = 0.2,
          .cores = cores};
}

TEST(StepModelTest, MoreWorkersMakeMoreBatchesAsFarAsTheCoresGo) {
  const StepModel model = model_of(two_workers(2));
  const auto input = [&](std::uint32_t workers) {
    const PredictedStep step = model.predict({.workers = workers});
    return step.preparation + step.fetch;
  };

  EXPECT_NEAR(input(1), 0.6, 0.0011);
  EXPECT_NEAR(input(2), 0.3, 0.0011);
  EXPECT_NEAR(input(4), 0.15, 0.0011);
  EXPECT_NEAR(input(16), 0.1, 0.0011);  // 200 ms of CPU time on two cores.
}

TEST(StepModelTest, AWorkerWhereThereWasNoneLoadsAhead) {
  const StepModel model = model_of({.compute = 0.1,
                                    .preparation = 0.02,
                                    .fetch = 0.03,
                                    .warm_supply = 0.02,
                                    .cold_supply = 0.05,
                                    .workers = 0});

  EXPECT_NEAR(model.predict({}).seconds(), 0.15, 1e-9);
  EXPECT_NEAR(model.predict({.workers = 0}).seconds(), 0.15, 1e-9);
  EXPECT_NEAR(model.predict({.workers = 1}).seconds(), 0.1, 1e-9);
}

TEST(StepModelTest, AWorkerThatWaitsForBytesLeavesItsCoreToTheOthers) {
  for (const double cores : {1.0, 2.0}) {
    const StepModel model = model_of(two_workers(cores));
    const double one = 1 / cores;
    const double two = 2 / cores;

    const auto input = [&](double cached, double times) {
      const PredictedStep step =
          model.predict({.cached = cached, .cores = times});
      return step.preparation + step.fetch;
    };
    EXPECT_NEAR(input(1, two), 0.1, 0.0011) << cores;
    EXPECT_NEAR(input(1, one), 0.2, 0.0011) << cores;
    EXPECT_NEAR(input(0, two), 0.3, 0.0011) << cores;
    EXPECT_NEAR(input(0, one), 0.3, 0.0011) << cores;
    EXPECT_NEAR(input(0.75, two), 0.15, 0.0011) << cores;
    EXPECT_NEAR(input(0.75, one), 0.2, 0.0011) << cores;
  }
}

TEST(StepModelTest, WorkersUseNoMoreCoresThanThereAreWorkers) {
  const PredictedStep step =
      model_of(two_workers(1)).predict({.cached = 1, .cores = 64});

  EXPECT_NEAR(step.preparation, 0.1, 0.0011);
}

TEST(StepModelTest, DevicesOfANodeShareItsCores) {
  MeasuredStep measured = loads_ahead();
  measured.cores = 2;
  measured.preparation_cpu = 0.3;

  const PredictedStep step =
      model_of(measured).predict({.cached = 1, .devices = 2});

  EXPECT_NEAR(step.preparation, 0.2, 1e-9);
}

TEST(StepModelTest, LatencyAndBandwidthTakeTheirShareOfFetching) {
  MeasuredStep measured = one_after_another();
  measured.latency_share = 0.75;
  const StepModel model = model_of(measured);

  EXPECT_NEAR(model.predict({.latency = 0.5}).fetch, 0.06 * 0.625, 1e-9);
  EXPECT_NEAR(model.predict({.bandwidth = 2}).fetch, 0.06 * 0.875, 1e-9);
}

TEST(StepModelTest, CommunicationGrowsAsTheTrafficOfARing) {
  MeasuredStep measured = one_after_another();
  measured.interconnect = 0.02;
  measured.network = 0.03;
  measured.devices = measured.nodes = 2;
  const StepModel model = model_of(measured);

  const PredictedStep step = model.predict({.devices = 8, .nodes = 4});

  EXPECT_NEAR(step.interconnect, 0.02 * (7.0 / 8) / 0.5, 1e-9);
  EXPECT_NEAR(step.network, 0.03 * (3.0 / 4) / 0.5, 1e-9);
  EXPECT_EQ(model.predict({.devices = 1, .nodes = 1}).interconnect, 0);
  EXPECT_NEAR(model.speedup({.devices = 8, .nodes = 4}),
              8 * 0.25 / step.seconds(), 1e-9);
}

TEST(StepModelTest, WithoutAWarmRunInputIsOnePart) {
  MeasuredStep measured{
      .compute = 0.1, .fetch = 0.1, .has_warm = false, .cold_supply = 0.1};

  expect_step(model_of(measured).predict({}), 0.1, 0, 0.1);
  expect_step(model_of(measured).predict({.loads_ahead = true}), 0.1, 0, 0);
}

TEST(StepModelTest, ASupplyThatWasMeasuredTooShortIsItsStall) {
  MeasuredStep measured = one_after_another();
  measured.warm_supply = measured.cold_supply = 0.01;

  expect_step(model_of(measured).predict({}), 0.1, 0.04, 0.06);
}

TEST(StepModelTest, WhatCannotBeAStepIsRefused) {
  std::vector<MeasuredStep> wrong(5, one_after_another());
  wrong[0].compute = 0;
  wrong[1].fetch = -1;
  wrong[2].warm_supply = std::nan("");
  wrong[3].devices = 0;
  wrong[4].latency_share = 1.5;

  for (const MeasuredStep& one : wrong) {
    const auto model = StepModel::of(one);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace leat
