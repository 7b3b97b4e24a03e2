#include "leat/profile/recommend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Machine kSmall = {
    .name = "small",
    .accelerator = "A",
    .speed = 100,
    .cores = 4,
    .memory_bytes = 16e9,
    .network = {.latency_seconds = 1e-4, .bytes_per_second = 1e9},
    .dollars_per_hour = 1};

/// 100 ms of compute; 40 ms wait for preparation by busy cores. 36,000 steps.
WholeTraining training() {
  return {.step = {.compute = 0.1,
                   .preparation = 0.04,
                   .warm_supply = 0.14,
                   .cold_supply = 0.14,
                   .preparation_cpu = 0.56,
                   .cores = 4},
          .measured_on = kSmall,
          .steps_an_epoch = 3600,
          .epochs = 10,
          .gets_a_batch = 32,
          .bytes_a_batch = 1e6};
}

std::vector<Offer> judged(const WholeTraining& training,
                          const std::vector<Machine>& machines,
                          const Prices& prices = {}) {
  auto offers = judge(training, machines, prices, {});
  EXPECT_TRUE(offers);
  return *offers;
}

TEST(RingTest, EveryBucketPaysLatencyAndEveryByteBandwidth) {
  const Link link{.latency_seconds = 1e-3, .bytes_per_second = 1e9};

  EXPECT_EQ(ring_seconds(3, 1e9, 1, link), 0);
  EXPECT_NEAR(ring_seconds(3, 1e9, 2, link), 2 * 3e-3 + 1, 1e-9);
  EXPECT_NEAR(ring_seconds(3, 1e9, 4, link), 6 * 3e-3 + 1.5, 1e-9);
  EXPECT_NEAR(ring_seconds(3, 0, 4, link), 6 * 3e-3, 1e-9);
}

TEST(RingTest, BucketsUnderWayTogetherWaitWhileTheLinkCarriesTheOthersBytes) {
  const Link link{.latency_seconds = 1e-3, .bytes_per_second = 1e9};

  EXPECT_NEAR(ring_seconds(3, 1e9, 4, link, 2), 1.5, 1e-9) << "hidden";
  EXPECT_NEAR(ring_seconds(3, 2e6, 4, link, 2), 3e-3 / 2 + 6 * 3e-3, 1e-9);
  EXPECT_NEAR(ring_seconds(3, 0, 4, link, 2), 6 * 3e-3, 1e-9);
}

TEST(JudgeTest, WithoutAcceleratorsTwoBucketsAreUnderWayAtOnce) {
  WholeTraining whole = training();
  whole.gradient_bytes = 1e8;
  whole.gradient_buckets = 4;
  Machine processors = kSmall;
  processors.accelerator = "";
  processors.most = 4;

  const auto offers = judged(whole, {processors});

  EXPECT_NEAR(offers[2].step.network, 0.15, 1e-9) << "6 * 4e-4 is hidden";
}

TEST(JudgeTest, WhereItWasMeasuredItTakesWhatWasMeasured) {
  const Prices prices{.get_per_1000 = 0.0004};

  const auto offers = judged(training(), {kSmall}, prices);

  ASSERT_EQ(offers.size(), 1u);
  EXPECT_NEAR(offers[0].hours, 0.14 * 36000 / 3600, 1e-9);
  EXPECT_NEAR(offers[0].cost.hours, 1.4, 1e-9);
  EXPECT_NEAR(offers[0].cost.gets, 36000 * 32 / 1000.0 * 0.0004, 1e-9);
}

TEST(JudgeTest, AFasterAcceleratorBehindTheSameCoresIsNotWorthItsPrice) {
  Machine fast = kSmall;
  fast.speed = 400;
  fast.dollars_per_hour = 3;
  Machine cores = kSmall;
  cores.cores = 8;
  cores.dollars_per_hour = 1.1;

  const auto offers = judged(training(), {kSmall, fast, cores});

  EXPECT_NEAR(offers[1].hours, offers[0].hours, 1e-9);
  EXPECT_NEAR(offers[2].hours, 1, 1e-9);
  EXPECT_FALSE(offers[0].is_front);
  EXPECT_FALSE(offers[1].is_front);
  EXPECT_TRUE(offers[2].is_front);
  EXPECT_EQ(choose(offers, {}), &offers[2]);
}

TEST(JudgeTest, ABatchTakesNoLessThanItsBytesOverTheNetwork) {
  WholeTraining whole = training();
  whole.step = {.compute = 0.1,
                .fetch = 0.1,
                .cold_supply = 0.2,
                .is_pipelined = true,
                .latency_share = 1.0};
  whole.bytes_a_batch = 1e8;
  Machine narrow = kSmall;
  narrow.network.bytes_per_second = 2e8;
  Machine shared = kSmall;
  shared.accelerators = 3;
  Machine unknown = kSmall;
  unknown.network.bytes_per_second = 0;
  whole.gradient_bytes = 1;

  const auto offers = judged(whole, {kSmall, narrow, shared, unknown});

  EXPECT_NEAR(offers[0].step.seconds(), 0.2, 1e-9);
  EXPECT_NEAR(offers[1].step.seconds(), 0.5, 1e-9);
  EXPECT_NEAR(offers[2].step.fetch, 0.2, 1e-9);
  EXPECT_NEAR(offers[3].step.seconds(), 0.2, 1e-9);
}

TEST(JudgeTest, ANetworkThatDidBetterThanItsListedRateIsTakenAtThat) {
  WholeTraining whole = training();
  whole.step = {.compute = 0.1,
                .fetch = 0.1,
                .cold_supply = 0.2,
                .is_pipelined = true,
                .latency_share = 1.0};
  whole.bytes_a_batch = 4e8;  // 0.4 s at the rate that is listed.
  Machine narrow = kSmall;
  narrow.network.bytes_per_second = 5e8;

  const auto offers = judged(whole, {kSmall, narrow});

  EXPECT_NEAR(offers[0].step.seconds(), 0.2, 1e-9);
  EXPECT_NEAR(offers[1].step.seconds(), 0.4, 1e-9);
}

TEST(JudgeTest, MoreRanksMakeFewerStepsAndPayForTheirGradients) {
  WholeTraining whole = training();
  whole.gradient_bytes = 1e8;
  whole.gradient_buckets = 4;
  Machine several = kSmall;
  several.most = 4;

  const auto offers = judged(whole, {several});

  ASSERT_EQ(offers.size(), 3u);
  EXPECT_EQ(offers[2].count, 4u);
  // Not measured, so all of it counts.
  EXPECT_NEAR(offers[2].step.network, 6 * 4e-4 + 0.15, 1e-9);
  // Preparation hides behind what is waited for anyway.
  EXPECT_NEAR(offers[2].hours, (0.1 + 0.1524) * 9000 / 3600, 1e-9);
}

TEST(JudgeTest, CommunicationThatWasHiddenStaysSo) {
  WholeTraining whole = training();
  whole.gradient_bytes = 1e8;
  whole.step.nodes = 2;
  whole.step.network = 0.025;  // A quarter of the ring's 0.1 s.

  Machine several = kSmall;
  several.most = 4;
  const auto offers = judged(whole, {several});

  EXPECT_NEAR(offers[1].step.network, 0.025, 1e-9);
  EXPECT_NEAR(offers[2].step.network, 0.0375, 1e-9);
}

TEST(JudgeTest, WhatWasMeasuredOverAnUnknownLinkGrowsAsARing) {
  WholeTraining whole = training();
  whole.gradient_bytes = 1e8;
  whole.measured_on.network = {};
  whole.step.nodes = 2;
  whole.step.network = 0.025;

  Machine several = kSmall;
  several.most = 4;
  const auto offers = judged(whole, {several});

  EXPECT_NEAR(offers[0].step.network, 0, 1e-9);
  EXPECT_NEAR(offers[1].step.network, 0.025, 1e-9);
  EXPECT_NEAR(offers[2].step.network, 0.0375, 1e-9);
}

TEST(JudgeTest, WithoutGradientsSeveralDevicesCannotBeJudged) {
  Machine several = kSmall;
  several.most = 2;

  const auto offers = judged(training(), {several});

  EXPECT_THAT(offers[0].why_not, IsEmpty());
  EXPECT_THAT(offers[1].why_not, HasSubstr("--nproc-per-node 2"));
  EXPECT_FALSE(offers[1].is_front);
  EXPECT_EQ(choose(offers, {.hours = 0.9}), nullptr);
}

TEST(JudgeTest, FewerCoresAreNotJudgedByATrainingWhoseCpuTimeIsNotKnown) {
  WholeTraining whole = training();
  whole.step = {.compute = 0.1,
                .fetch = 0.3,
                .has_warm = false,
                .cold_supply = 0.4,
                .cores = 48};
  Machine same = kSmall;
  same.cores = 48;
  Machine one = kSmall;
  one.cores = 1;
  one.dollars_per_hour = 0.1;
  Machine tried = one;
  tried.measured_step_seconds = 5;

  const auto offers = judged(whole, {same, one, tried});

  EXPECT_THAT(offers[0].why_not, IsEmpty());
  EXPECT_THAT(offers[1].why_not, HasSubstr("fewer cores"));
  EXPECT_FALSE(offers[1].is_front);
  EXPECT_NE(choose(offers, {}), &offers[1]);
  EXPECT_THAT(offers[2].why_not, IsEmpty()) << "its step was measured";
}

TEST(JudgeTest, WithoutTheTimeOfABatchOnlyWhatWasProfiledIsJudged) {
  WholeTraining whole = training();
  whole.step.has_supply = false;
  Machine fast = kSmall;
  fast.name = "fast";
  fast.speed = 800;

  const auto offers = judged(whole, {kSmall, fast});

  EXPECT_NEAR(offers[0].step.seconds(), 0.14, 1e-9);
  EXPECT_THAT(offers[1].why_not, HasSubstr("time to make a batch"));
}

TEST(JudgeTest, DevicesOfAMachineShareItsCoresAndItsNetwork) {
  WholeTraining whole = training();
  whole.gradient_bytes = 1;
  whole.step.latency_share = 0;
  whole.step.fetch = 0.1;
  whole.step.cold_supply = 0.24;
  Machine four = kSmall;
  four.accelerators = 4;
  four.cores = 4;

  const auto offers = judged(whole, {four});

  EXPECT_NEAR(offers[0].step.preparation, 4 * 0.14 - 0.1, 1e-9);
  EXPECT_NEAR(offers[0].step.fetch, 0.4, 1e-9);
}

TEST(JudgeTest, WhatFitsIntoTheCacheIsReadFromItAfterTheFirstEpoch) {
  WholeTraining whole = training();
  whole.has_cache = true;
  whole.step.fetch = 0.1;
  whole.step.cold_supply = 0.24;
  whole.bytes_a_batch = 8e9 / 3600;  // Half the memory is 8e9.
  const Prices prices{.get_per_1000 = 1};

  const auto offers = judged(whole, {kSmall}, prices);

  EXPECT_NEAR(offers[0].hours, (0.24 + 9 * 0.14), 1e-9);
  EXPECT_NEAR(offers[0].cost.gets, 3600 * 32 / 1000.0, 1e-9);
}

TEST(JudgeTest, AMeasuredMachineIsBelievedAndScalesItsMultiples) {
  WholeTraining whole = training();
  whole.gradient_bytes = 1;
  Machine measured = kSmall;
  measured.measured_step_seconds = 0.28;
  measured.most = 2;

  const auto offers = judged(whole, {measured});

  EXPECT_NEAR(offers[0].hours, 2.8, 1e-9);
  EXPECT_NEAR(offers[0].step.seconds(), 0.28, 1e-9);
  EXPECT_NEAR(offers[1].hours, 1.4, 1e-3);
}

TEST(ChooseTest, CheapestInTimeFastestForTheMoneyElseCheapest) {
  std::vector<Offer> offers(3);
  offers[0].hours = 10;
  offers[0].cost.hours = 10;
  offers[1].hours = 5;
  offers[1].cost.hours = 15;
  offers[2].hours = 2;
  offers[2].cost.hours = 40;

  EXPECT_EQ(choose(offers, {}), &offers[0]);
  EXPECT_EQ(choose(offers, {.hours = 6, .dollars = {}}), &offers[1]);
  EXPECT_EQ(choose(offers, {.hours = {}, .dollars = 20}), &offers[1]);
  EXPECT_EQ(choose(offers, {.hours = 1, .dollars = {}}), nullptr);
}

TEST(JudgeTest, WhatIsPastAnyNumberIsLeftOut) {
  Machine endless = kSmall;
  endless.speed = 1e-308;
  Machine priceless = kSmall;
  priceless.dollars_per_hour = 1e308;
  WholeTraining much = training();
  much.steps_an_epoch = 1e12;

  const auto offers = judged(much, {kSmall, endless, priceless});

  ASSERT_EQ(offers.size(), 3u);
  EXPECT_EQ(offers[0].why_not, "");
  EXPECT_TRUE(offers[0].is_front);
  EXPECT_THAT(offers[1].why_not, HasSubstr("past any number"));
  EXPECT_THAT(offers[2].why_not, HasSubstr("past any number"));
}

TEST(JudgeTest, ATrainingWithoutStepsIsRefused) {
  WholeTraining whole = training();
  whole.steps_an_epoch = 0;

  EXPECT_FALSE(judge(whole, std::vector<Machine>{kSmall}, {}, {}));
}

}  // namespace
}  // namespace leat
