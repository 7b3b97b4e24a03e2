#include "leat/tune/sharing_simulator.h"

#include <gtest/gtest.h>

#include <vector>

#include "leat/tune/shared_rates.h"

namespace leat {
namespace {

constexpr SharingPolicy kAll[] = {
    SharingPolicy::kEven, SharingPolicy::kUnshared, SharingPolicy::kWorkersOnly,
    SharingPolicy::kThroughput, SharingPolicy::kFairness};

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

TEST(SharingSimulatorTest, RefusesWhatCannotBe) {
  SharingSimulation wrong{.node = {.threads = 8}, .jobs = {job(1, 1, 1)}};
  wrong.jobs[0].nodes = 2;
  EXPECT_FALSE(simulate_sharing(wrong));
  wrong.jobs[0] = {.name = "free", .samples = 1};
  EXPECT_FALSE(simulate_sharing(wrong));
  wrong.jobs[0] = job(1e-3, 1, 1e9);
  EXPECT_FALSE(simulate_sharing(wrong));
}

}  // namespace
}  // namespace leat
