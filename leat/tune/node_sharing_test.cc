#include "leat/tune/node_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "leat/tune/testing/sharing_world.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

constexpr JobSpeed kLight{.compute_ceiling = 100, .rate_per_thread = 100};
constexpr JobSpeed kHeavy{.compute_ceiling = 1300, .rate_per_thread = 100};

TEST(NodeSharingTest, AnEvenShareUntilMoreIsKnown) {
  SharingWorld world({.threads = 8});
  world.come("a", kLight);
  EXPECT_EQ(world.threads_of("a"), 8);
  world.come("b", kHeavy);
  EXPECT_EQ(world.threads_of("a"), 4);
  EXPECT_EQ(world.threads_of("b"), 4);
  EXPECT_THAT(to_string(world.sharing().decisions().back()),
              HasSubstr("an even share until more is known"));

  world.run(20);

  EXPECT_EQ(world.rate_of("a"), 100);
  EXPECT_GE(world.threads_of("b"), 6);
}

TEST(NodeSharingTest, WhatAJobLeavesIsGivenOut) {
  SharingWorld world({.threads = 8});
  for (const std::string job : {"a", "b", "c"}) world.come(job, kHeavy);
  world.run(20);
  EXPECT_LE(world.threads_of("a"), 4);

  world.go("c");
  world.run(1);

  EXPECT_EQ(world.threads_of("a") + world.threads_of("b"), 8);
}

TEST(NodeSharingTest, WhatAJobLeavesIsGivenOutThoughTheLeastGainsNothing) {
  SharingWorld world({.threads = 8}, {.allocation = {Objective::kFairness}});
  // A tenth of its speed alone, and no share can help that.
  world.come("held", {.compute_ceiling = 100, .rate_per_thread = 100});
  world.sharing().set_elsewhere("held",
                                {.offered = 10, .reached = 10, .ceiling = 100});
  for (const std::string job : {"a", "b", "c"}) world.come(job, kHeavy);
  world.run(20);
  ASSERT_LE(world.threads_of("a") + world.threads_of("b"), 6);

  world.go("c");
  world.run(1);

  EXPECT_EQ(world.threads_of("a") + world.threads_of("b"), 7);
}

TEST(NodeSharingTest, WhoComesToNeedMoreIsLiftedToItsFloor) {
  SharingWorld world({.threads = 9}, {.least_seconds = 60});
  for (const std::string job : {"a", "b"}) world.come(job, kHeavy);
  world.come("c", kLight);
  world.run(20);
  ASSERT_EQ(world.threads_of("c"), 1);

  // The sum is the same for any dealing of the threads.
  world.truth_of("c") = kHeavy;
  world.run(120);

  // Two, half of three in whole threads, at least; and all three gain the same.
  EXPECT_EQ(world.threads_of("c"), 3);
}

TEST(NodeSharingTest, WhatAnIdleJobDoesNotUseOthersHaveUntilItReadsAgain) {
  SharingWorld world({.threads = 8, .cache_bytes = 1000});
  world.come("a", kHeavy);
  world.come("b", kHeavy);
  world.run(20);
  const Grant before = world.grant_of("a");
  ASSERT_LE(world.threads_of("b"), 4);
  ASSERT_GT(before.cache_bytes, 0);

  world.set_idle("a", true);
  world.run(5);
  EXPECT_LE(world.threads_of("b"), 4) << "a long step is no idleness";
  world.run(10);
  EXPECT_EQ(world.threads_of("b"), 8);
  EXPECT_EQ(world.threads_of("a"), before.threads);
  EXPECT_EQ(world.grant_of("a").cache_bytes, before.cache_bytes);
  EXPECT_LE(world.grant_of("b").cache_bytes + before.cache_bytes, 1000);

  world.set_idle("a", false);
  world.run(1);
  EXPECT_EQ(world.threads_of("a") + world.threads_of("b"), 8);
  EXPECT_GE(world.threads_of("a"), 3);
}

TEST(NodeSharingTest, WhoWaitsForItsDataIsNotIdle) {
  SharingWorld world({.threads = 8});
  world.come("a", kHeavy);
  world.come("b", kHeavy);
  world.run(20);

  world.set_stuck("a");
  world.run(60);

  EXPECT_LE(world.threads_of("b"), 4);
}

/// The dataset has 1,000 bytes, which it reads from far away.
TEST(NodeSharingTest, SecondsWithoutABatchCountWithTheNext) {
  const JobSpeed truth{.compute_ceiling = 15, .rate_per_thread = 100};
  const Grant grant{.threads = 1};
  NodeSharing sharing({.threads = 8}, {});
  sharing.arrive("a", {});
  const SharingJob& job = sharing.jobs().begin()->second;
  // Two seconds a step, of 30 samples.
  for (int second = 0; second < 20; ++second) {
    JobReport said = report_of(truth, grant, 15, 1);
    said.samples = second % 2 == 0 ? 0 : 30;
    sharing.report("a", said);
    sharing.decide(second);
    EXPECT_EQ(job.has_found, second % 2 == 1);
    if (second > 8 && job.has_found) {
      EXPECT_NEAR(job.fit.found_rate(), 15, 0.1);
      EXPECT_NEAR(job.foretold_rate, 15, 0.1);
    }
  }
  for (int second = 20; second < 25; ++second) {
    sharing.report("a", {.seconds = 1});
    sharing.decide(second);
  }
  EXPECT_EQ(job.fit.found_rate(), 0);
}

TEST(NodeSharingTest, WhatAJobWasForetoldIsFromBeforeItWasSeen) {
  SharingWorld world({.threads = 8});
  world.come("a", kHeavy);
  world.run(10);
  world.truth_of("a").rate_per_thread = 50;
  world.run(1);
  const SharingJob& job = world.sharing().jobs().begin()->second;
  EXPECT_NEAR(job.foretold_rate, 800, 1);
  EXPECT_NEAR(job.fit.found_rate(), 400, 1);
  EXPECT_LT(job.expected_rate, 790);
}

TEST(NodeSharingTest, WhoReportsFirstIsNotTheSlowerForWhatOthersRead) {
  NodeSharing sharing({.threads = 2, .bytes_per_second = 1e6}, {});
  for (const std::string job : {"a", "b"}) sharing.arrive(job, {});
  const auto second = [&](double now, double latency, double read_by_b) {
    const Grant grant{.threads = 1, .in_flight = 4};
    sharing.report("a", report_of({.reads_per_sample = 1,
                                   .read_bytes_per_sample = 1000,
                                   .latency_seconds = latency},
                                  grant, 4 / latency, 1));
    sharing.report("b", report_of({.reads_per_sample = 1,
                                   .read_bytes_per_sample = 1000,
                                   .latency_seconds = latency},
                                  grant, read_by_b / 1000, 1));
    sharing.decide(now);
  };

  for (int now = 1; now < 10; ++now) second(now, 0.04, 1000);
  second(10, 0.08, 9.5e5);

  EXPECT_NEAR(sharing.jobs().find("a")->second.fit.latency_with_room(), 0.04,
              1e-9);
}

TEST(NodeSharingTest, ForetellsNoMoreThanItsUserAllows) {
  // Requests are not shared out, and this job may have four.
  const JobSpeed truth{.reads_per_sample = 1, .latency_seconds = 0.1};
  NodeSharing sharing({.threads = 8}, {});
  sharing.arrive("a", {.most_in_flight = 4});
  sharing.decide(0);
  for (int second = 1; second < 10; ++second) {
    const Grant grant{.threads = 8, .in_flight = 4};
    sharing.report("a", report_of(truth, grant, 40, 1));
    sharing.decide(second);
  }

  const SharingJob& job = sharing.jobs().begin()->second;
  EXPECT_NEAR(job.predicted_rate(), 40, 0.1);
  EXPECT_EQ(job.predict_with(job.grant).bound, Bound::kInFlight);
}

const NodeResources kLinked{.threads = 4, .bytes_per_second = 16e6};
/// Takes all of that link.
constexpr JobSpeed kReader{.compute_ceiling = 20000,
                           .reads_per_sample = 1,
                           .read_bytes_per_sample = 1000};

TEST(NodeSharingTest, NoBandwidthIsKeptForWhoHasNotReadYet) {
  SharingWorld world(kLinked);
  world.come("a", kReader);
  world.run(10);
  world.come("b", kLight);

  EXPECT_GE(world.grant_of("a").bytes_per_second, 15e6);
  EXPECT_GE(world.grant_of("b").bytes_per_second, 8e6);
}

TEST(NodeSharingTest, ABucketsBandwidthIsOfThoseThatReadIt) {
  SharingWorld world({.threads = 4, .bucket_bytes_per_second = {4e6}});
  for (const std::string job : {"a", "b"}) {
    world.come(job, kReader, {}, {.buckets = {0}});
  }
  world.come("other", kReader);
  world.run(20);

  const auto limit = [&](const std::string& job) {
    return world.grant_of(job).bytes_per_second;
  };
  EXPECT_NEAR(limit("a") + limit("b"), 4e6, 1e5);
  EXPECT_EQ(limit("other"), kUnbounded);
  EXPECT_EQ(world.rate_of("other"), 20000);

  world.go("b");
  world.run(6);

  EXPECT_EQ(limit("a"), 4e6);
}

TEST(NodeSharingTest, WhatOneStopsReadingOthersHaveAtOnce) {
  SharingWorld world(kLinked);
  world.come("a", kReader);
  world.come("b", kReader);
  world.run(30);
  const double before = world.grant_of("a").bytes_per_second +
                        world.grant_of("b").bytes_per_second;
  EXPECT_NEAR(before, 16e6, 1e5);

  world.truth_of("b").compute_ceiling = 500;
  world.run(6);

  EXPECT_GE(world.grant_of("a").bytes_per_second, 14e6);
}

TEST(NodeSharingTest, OfTwoThatGainAlikeWhoIsSoonDoneGoesFirst) {
  SharingWorld world(kLinked);
  world.come("long", kReader, {}, {.samples_to_do = 1e8});
  world.come("short", kReader, {}, {.samples_to_do = 1e6});
  world.come("unsaid", kReader);
  world.run(20);

  // But for the floors of the others.
  EXPECT_GE(world.grant_of("short").bytes_per_second, 10e6);
}

TEST(NodeSharingTest, WhoDoesMoreThanItSaidIsNotSoonDone) {
  SharingWorld world(kLinked);
  world.come("long", kReader, {}, {.samples_to_do = 1e8});
  world.come("honest", kReader, {}, {.samples_to_do = 1e7});
  world.come("liar", kReader, {}, {.samples_to_do = 1000});
  world.run(20);

  EXPECT_GE(world.grant_of("honest").bytes_per_second, 10e6);
}

TEST(NodeSharingTest, SteadyJobsAreLeftAlone) {
  SharingWorld world({.threads = 8});
  world.come("a", kLight);
  world.come("b", kHeavy);
  world.run(30);
  const int settled = world.changes();

  world.run(600);

  EXPECT_EQ(world.changes(), settled);
}

TEST(NodeSharingTest, LimitsOfSteadyReadersRest) {
  SharingWorld world(kLinked);
  world.come("a", kReader);
  world.come("b", kReader);
  world.come("c", kLight);
  world.run(30);
  const int settled = world.changes();

  world.run(600);

  EXPECT_EQ(world.changes(), settled);
}

TEST(NodeSharingTest, FollowsAJobThatDrifts) {
  SharingWorld world({.threads = 8});
  world.come("a", kLight);
  world.come("b", kHeavy);
  world.run(30);
  ASSERT_LE(world.threads_of("a"), 2);

  world.truth_of("a").rate_per_thread = 25;  // Four threads for its training.
  world.run(60);

  EXPECT_EQ(world.rate_of("a"), 100);
}

/// Shares have changed and rest for a minute; meanwhile "a" has come to need
/// four threads.
SharingWorld world_that_rests() {
  SharingWorld world({.threads = 8}, {.least_seconds = 60});
  for (const std::string job : {"b", "c"}) world.come(job, kHeavy);
  world.come("a", kLight);
  world.run(120);
  world.go("c");
  world.run(1);
  world.truth_of("a").rate_per_thread = 25;
  world.run(50);
  return world;
}

TEST(NodeSharingTest, AnEpochThatHasEndedIsAReasonToDecide) {
  SharingWorld resting = world_that_rests();
  resting.run(3);
  ASSERT_LE(resting.threads_of("a"), 2);

  SharingWorld world = world_that_rests();
  world.begin_epochs("b", true);
  world.run(3);
  EXPECT_GE(world.threads_of("a"), 3);
  EXPECT_THAT(to_string(world.sharing().decisions().back()),
              HasSubstr("an epoch has ended"));
}

TEST(NodeSharingTest, ShortEpochsAreNone) {
  SharingWorld world({.threads = 8}, {.least_seconds = 60});
  world.come("a", kLight);
  world.come("b", kHeavy);
  world.begin_epochs("b", true);
  world.run(90);
  world.come("c", kHeavy);
  world.run(20);
  world.truth_of("a").rate_per_thread = 25;
  world.run(20);
  EXPECT_LE(world.threads_of("a"), 2);
}

TEST(NodeSharingTest, SaysWhenThereIsNothingToGain) {
  SharingWorld world({.threads = 8});
  world.come("a", kLight);
  world.come("b", kLight);

  world.run(60);

  EXPECT_THAT(world.sharing().decisions().back().reason,
              HasSubstr("nothing to gain: every job waits for its training"));
  EXPECT_EQ(world.rate_of("a"), 100);
  EXPECT_EQ(world.rate_of("b"), 100);
}

TEST(NodeSharingTest, DecisionsSayWhatWasExpectedAndFound) {
  SharingWorld world({.threads = 8});
  world.come("a", kLight);
  world.come("b", kHeavy);

  world.run(30);

  bool is_found = false;
  for (const Decision& decision : world.sharing().decisions()) {
    if (decision.job != "b" || !decision.found_gain) continue;
    is_found = true;
    EXPECT_GT(*decision.expected_gain, 0.3);
    EXPECT_NEAR(*decision.found_gain, *decision.expected_gain, 0.01);
  }
  EXPECT_TRUE(is_found);
}

TEST(NodeSharingTest, GivesWayToOtherPrograms) {
  SharingWorld world({.threads = 8});
  world.come("a", kHeavy);
  world.come("b", kHeavy);
  world.run(30);

  world.sharing().set_resources({.threads = 4});
  world.run(15);

  EXPECT_LE(world.threads_of("a") + world.threads_of("b"), 4);
}

/// The worth of lies: others against a liar that has its even share.
void expect_a_liar_takes_nothing(const Lie& lie, double kept) {
  const NodeResources node{.threads = 16};
  const std::map<std::string, JobSpeed> others = {
      {"a", kLight},
      {"b", {.compute_ceiling = 500, .rate_per_thread = 100}},
      {"c", kHeavy}};
  SharingWorld world(node);
  for (const auto& [name, truth] : others) world.come(name, truth);
  world.come("liar", {.compute_ceiling = 400, .rate_per_thread = 100}, lie);
  world.run(120);

  // Beside somebody with four threads of sixteen who wants no more.
  std::vector<Claim> claims;
  for (const auto& [name, truth] : others) {
    claims.emplace_back();
    claims.back().speed = truth;
  }
  claims.emplace_back();
  const auto grants = allocate(node, claims, {});
  double sum = 0;
  double sum_beside_even = 0;
  std::size_t i = 0;
  for (const auto& [name, truth] : others) {
    const double alone = rate_alone(node, claims[i]);
    sum += world.rate_of(name) / alone;
    sum_beside_even += predict(truth, grants[i++]).rate / alone;
  }
  EXPECT_GE(sum, kept * sum_beside_even);
}

TEST(NodeSharingTest, AJobThatLiesLosesOnlyItsOwn) {
  const std::map<std::string, Lie> lies = {
      {"needs ten times the threads",
       [](JobReport& said) { said.busy_seconds *= 10; }},
      {"trains infinitely fast",
       [](JobReport& said) { said.training_seconds = 0; }},
      {"both",
       [](JobReport& said) {
         said.busy_seconds *= 3;
         said.training_seconds /= 10;
       }},
      {"not a number",
       [](JobReport& said) {
         said.busy_seconds = std::numeric_limits<double>::quiet_NaN();
       }},
      {"negative", [](JobReport& said) { said.samples = -1e9; }},
  };
  for (const auto& [name, lie] : lies) {
    SCOPED_TRACE(name);
    expect_a_liar_takes_nothing(lie, 0.97);
  }
}

TEST(NodeSharingTest, AJobWhoseFiguresDoNotHoldHasItsEvenShare) {
  SharingWorld world({.threads = 16});
  for (const std::string job : {"a", "b", "c"}) world.come(job, kHeavy);
  world.come("liar", kHeavy, [](JobReport& said) { said.busy_seconds *= 10; });

  world.run(60);

  EXPECT_EQ(world.threads_of("liar"), 4);
  world.come("d", kHeavy);
  EXPECT_EQ(world.threads_of("liar"), 3);
}

RC_GTEST_PROP(NodeSharingProperty, WhateverOneSaysOthersKeepTheirFloor,
              (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  const double scales[] = {0,
                           1e-300,
                           1e-6,
                           0.1,
                           1,
                           10,
                           1e6,
                           1e300,
                           -1,
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()};
  const auto garble = [&](JobReport& said) {
    for (double* field :
         {&said.samples, &said.training_seconds, &said.wait_seconds,
          &said.reads, &said.read_bytes, &said.read_seconds, &said.tasks,
          &said.busy_seconds, &said.cache_hits, &said.cache_misses,
          &said.threads, &said.in_flight, &said.seconds}) {
      if (random() % 3 == 0) *field *= scales[random() % std::size(scales)];
    }
    for (double* field :
         {&said.decoded_hits, &said.kept_bytes, &said.saved_seconds}) {
      if (random() % 3 == 0) *field = scales[random() % std::size(scales)];
    }
  };
  SharingWorld world({.threads = 9,
                      .in_flight = 64,
                      .bytes_per_second = 1e8,
                      .cache_bytes = 1e9});
  world.come("a", kLight);
  world.come("b", kHeavy);
  world.come("liar", kHeavy, garble);

  for (int i = 0; i < 20; ++i) {
    world.run(5);
    double threads = 0;
    for (const std::string job : {"a", "b", "liar"}) {
      threads += world.threads_of(job);
    }
    RC_ASSERT(threads <= 9);
    RC_ASSERT(world.rate_of("a") >= 0.5 * 100);
    RC_ASSERT(world.rate_of("b") >= 0.5 * 300);
  }
}

}  // namespace
}  // namespace leat
