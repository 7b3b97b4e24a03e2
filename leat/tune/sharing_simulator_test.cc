#include "leat/tune/sharing_simulator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <stop_token>
#include <utility>
#include <vector>

#include "leat/tune/shared_rates.h"

namespace leat {
namespace {

constexpr SharingPolicy kAll[] = {
    SharingPolicy::kEven,        SharingPolicy::kUnshared,
    SharingPolicy::kWorkersOnly, SharingPolicy::kSplit,
    SharingPolicy::kThroughput,  SharingPolicy::kFairness};

SimulatedJob job(double ceiling, double rate_per_thread, double samples) {
  return {.name = "job",
          .samples = samples,
          .truth = {.compute_ceiling = ceiling,
                    .rate_per_thread = rate_per_thread}};
}

SharingReport run(SharingSimulation simulation, SharingPolicy policy) {
  simulation.policy = policy;
  auto report = simulate_sharing(simulation);
  EXPECT_TRUE(report) << report.error().message();
  return std::move(*report);
}

TEST(SharingSimulatorTest, AJobAloneGoesAtItsOwnSpeed) {
  const SharingSimulation one{.node = {.threads = 8},
                              .jobs = {job(500, 100, 1e5)}};
  for (const SharingPolicy policy : kAll) {
    const SharingReport report = run(one, policy);
    EXPECT_NEAR(report.makespan_seconds, 200, 1) << to_string(policy);
    EXPECT_NEAR(report.mean_speed, 1, 0.01);
    EXPECT_NEAR(report.fairness_index, 1, 1e-9);
  }
}

TEST(SharingSimulatorTest, AnEvenSplitHalvesTwoThatWantAll) {
  const SharingSimulation two{.node = {.threads = 8},
                              .jobs = {job(800, 100, 1e5), job(800, 100, 1e5)}};
  for (const SharingPolicy policy : kAll) {
    EXPECT_NEAR(run(two, policy).makespan_seconds, 250, 2) << to_string(policy);
  }
}

TEST(SharingSimulatorTest, SharesHelpWhereNeedsDiffer) {
  // One needs a thread of eight, the other seven.
  const SharingSimulation two{.node = {.threads = 8},
                              .jobs = {job(100, 100, 5e4), job(700, 100, 7e5)}};

  const double even = run(two, SharingPolicy::kEven).makespan_seconds;
  const SharingReport ours = run(two, SharingPolicy::kThroughput);

  EXPECT_GT(even, 1.2 * ours.makespan_seconds);
  EXPECT_GT(ours.least_speed, 0.95);
  EXPECT_LT(ours.prediction_error, 0.07);
}

TEST(SharingSimulatorTest, AJobOverNodesGoesAtItsSlowest) {
  SharingSimulation pair{.node = {.threads = 4},
                         .nodes = 2,
                         .jobs = {job(400, 100, 4e4), job(400, 100, 4e5)}};
  pair.jobs[0].nodes = 2;
  const SharingReport even = run(pair, SharingPolicy::kEven);

  // Two of four threads on one node hold it to half on both.
  EXPECT_NEAR(even.jobs[0].run_seconds, 200, 1);

  // It takes no more on its free node than its other rank can follow.
  const SharingReport ours = run(pair, SharingPolicy::kThroughput);
  EXPECT_LE(ours.jobs[0].run_seconds, 205);
}

TEST(SharingSimulatorTest, LimitsOfMoreThanThereIsBringNoMore) {
  const std::vector<Claim> claims(
      2, {.speed = {.compute_ceiling = 90, .read_bytes_per_sample = 1}});
  const std::vector<Grant> grants(2, {.bytes_per_second = 100});

  const auto rates = rates_of({.bytes_per_second = 100}, claims, grants);

  EXPECT_EQ(rates, (std::vector<double>{50, 50}));
}

TEST(SharingSimulatorTest, JobsOfABucketShareWhatItBrings) {
  for (const SharingPolicy policy :
       {SharingPolicy::kEven, SharingPolicy::kUnshared,
        SharingPolicy::kWorkersOnly, SharingPolicy::kSplit,
        SharingPolicy::kThroughput, SharingPolicy::kFairness}) {
    SharingSimulation simulation{
        .node = {.threads = 8, .bucket_bytes_per_second = {1e6}},
        .policy = policy,
        .noise = 0};
    for (const bool is_of_bucket : {true, true, false}) {
      SimulatedJob job{.samples = 10000};
      job.truth = {.compute_ceiling = 100, .read_bytes_per_sample = 2e4};
      if (is_of_bucket) job.buckets = {0};
      simulation.jobs.push_back(job);
    }

    const auto report = simulate_sharing(simulation);

    ASSERT_TRUE(report) << report.error().message();
    // Alone 50 a second of the bucket, so together 25 each; and 100 beside it.
    EXPECT_NEAR(report->jobs[0].run_seconds + report->jobs[1].run_seconds, 800,
                240)
        << to_string(policy);
    EXPECT_GE(report->makespan_seconds, 399) << to_string(policy);
    EXPECT_LE(report->makespan_seconds, 420) << to_string(policy);
    EXPECT_NEAR(report->jobs[2].run_seconds, 100, 2) << to_string(policy);
  }
}

TEST(SharingSimulatorTest, JobsWaitForAPlaceAndForTheirTime) {
  SharingSimulation queue{.node = {.threads = 8},
                          .jobs_per_node = 1,
                          .jobs = {job(100, 100, 1e4), job(100, 100, 1e4)}};
  queue.jobs[1].arrives_seconds = 50;

  const SharingReport report = run(queue, SharingPolicy::kEven);

  EXPECT_NEAR(report.jobs[1].waited_seconds, 50, 1.5);
  EXPECT_NEAR(report.makespan_seconds, 200, 3);
}

TEST(SharingSimulatorTest, TheSameSeedTellsTheSame) {
  SharingSimulation some{.node = {.threads = 8}, .seed = 3};
  for (int i = 1; i < 6; ++i) some.jobs.push_back(job(100.0 * i, 90, 2e4));

  const SharingReport once = run(some, SharingPolicy::kFairness);
  const SharingReport again = run(some, SharingPolicy::kFairness);

  EXPECT_EQ(once.makespan_seconds, again.makespan_seconds);
  EXPECT_EQ(once.mean_speed, again.mean_speed);
  EXPECT_EQ(once.changes_per_job_hour, again.changes_per_job_hour);
}

TEST(SharingSimulatorTest, StopsWhenTold) {
  const SharingSimulation one{.node = {.threads = 8},
                              .jobs = {job(500, 100, 1e5)}};
  std::stop_source stop;
  stop.request_stop();

  const auto report = simulate_sharing(one, stop.get_token());

  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kCancelled);
}

TEST(SharingSimulatorTest, RefusesWhatCannotBe) {
  SharingSimulation wrong{.node = {.threads = 8}, .jobs = {job(1, 1, 1)}};
  wrong.jobs[0].nodes = 2;
  EXPECT_FALSE(simulate_sharing(wrong));
  wrong.jobs[0] = {.name = "free", .samples = 1};
  EXPECT_FALSE(simulate_sharing(wrong));
  wrong.jobs[0] = job(1e-3, 1, 1e9);
  EXPECT_FALSE(simulate_sharing(wrong));
}

/// Jobs of every kind on a few nodes that are crowded; they leave when an even
/// split would have done them.
SharingSimulation crowded(std::uint64_t seed, std::uint32_t most_nodes) {
  SharingSimulation some{.node = {.threads = 16,
                                  .in_flight = 128,
                                  .bytes_per_second = 6e8,
                                  .cache_bytes = 5e10},
                         .nodes = 3,
                         .seed = seed};
  for (int i = 0; i < 21; ++i) {
    const double spread = 1 + 0.2 * ((i * 7) % 11);
    SimulatedJob one = i % 3 == 0 ? job(100 * spread, 70, 6e4)
                                  : job(2500, 90 * spread, 3e5 * spread);
    one.truth.reads_per_sample = 1;
    one.truth.read_bytes_per_sample = i % 4 == 0 ? 2e6 : 1e5;
    one.truth.latency_seconds = 0.02 * spread;
    one.truth.dataset_bytes = 2e10;
    one.dataset_samples = 2e10 / one.truth.read_bytes_per_sample;
    one.nodes = i % 7 == 0 ? most_nodes : 1;
    one.arrives_seconds = 40.0 * i;
    some.jobs.push_back(std::move(one));
  }
  const SharingReport even = run(some, SharingPolicy::kEven);
  for (std::size_t i = 0; i < some.jobs.size(); ++i) {
    some.jobs[i].arrives_seconds += even.jobs[i].waited_seconds;
    some.jobs[i].leaves_seconds = even.jobs[i].finished_seconds;
  }
  return some;
}

TEST(SharingSimulatorTest, EachObjectiveIsBestUnderItsOwnPolicy) {
  for (const std::uint64_t seed : {1, 2}) {
    const SharingSimulation some = crowded(seed, 1);
    std::map<SharingPolicy, SharingReport> by;
    for (const SharingPolicy policy : kAll) by[policy] = run(some, policy);

    for (const SharingPolicy policy : kAll) {
      SCOPED_TRACE(to_string(policy));
      const SharingReport& report = by[policy];
      // The margin is for the delay of reports, which are noisy and come once a
      // second.
      EXPECT_LE(report.least_at_once,
                1.01 * by[SharingPolicy::kFairness].least_at_once);
      if (policy == SharingPolicy::kSplit) continue;  // Bounds the others.
      EXPECT_LE(report.mean_speed, by[SharingPolicy::kSplit].mean_speed);
      if (policy == SharingPolicy::kUnshared) continue;  // Splits threads, too.
      EXPECT_LE(report.mean_speed,
                1.01 * by[SharingPolicy::kThroughput].mean_speed);
    }
  }
}

TEST(SharingSimulatorTest, NobodyStarvesUnderAFloor) {
  for (const std::uint64_t seed : {1, 2}) {
    SharingSimulation some = crowded(seed, 2);
    EXPECT_EQ(run(some, SharingPolicy::kThroughput).starved_part, 0);
    EXPECT_EQ(run(some, SharingPolicy::kFairness).starved_part, 0);

    some.sharing.allocation.floor = 0;
    EXPECT_GT(run(some, SharingPolicy::kThroughput).starved_part, 0);
  }
}

TEST(SharingSimulatorTest, WithoutAFloorOneMayStandStill) {
  SharingSimulation three{
      .node = {.threads = 8, .bytes_per_second = 100},
      .jobs = {job(100, 100, 1e4), job(25, 100, 1e4), job(25, 100, 1e4)}};
  three.sharing.allocation.floor = 0;
  for (SimulatedJob& one : three.jobs) {
    one.truth.read_bytes_per_sample = 2;
    one.leaves_seconds = 50;
  }
  three.jobs[0].truth.read_bytes_per_sample = 1;  // Would want the whole link.

  const SharingReport report = run(three, SharingPolicy::kSplit);

  EXPECT_EQ(report.jobs[0].speed, 0);
  EXPECT_NEAR(report.jobs[1].speed, 1, 1e-6);
  EXPECT_EQ(report.makespan_seconds, 50);
}

TEST(SharingSimulatorTest, ThreadsThatAreSplitAreNoMoreThanThereAre) {
  const std::vector<Claim> claims(
      3, {.speed = {.compute_ceiling = 900, .rate_per_thread = 100}});

  const auto rates = split_rates({.threads = 2}, claims, {});

  EXPECT_NEAR(rates[0] + rates[1] + rates[2], 200, 1e-6);
}

}  // namespace
}  // namespace leat
