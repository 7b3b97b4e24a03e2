#include "leat/tune/job_fit.h"

#include <gtest/gtest.h>

#include <vector>

#include "leat/tune/sharing_simulator.h"

namespace leat {
namespace {

/// Its cache keeps samples decoded.
constexpr JobSpeed kDecoded{.compute_ceiling = 8000,
                            .rate_per_thread = 100,
                            .reads_per_sample = 1,
                            .read_bytes_per_sample = 1e5,
                            .latency_seconds = 0.05,
                            .dataset_bytes = 6e9,
                            .saved_seconds = 0.009};

TEST(JobFitTest, LearnsWhatAJobIsLike) {
  const JobSpeed truth{.compute_ceiling = 800,
                       .rate_per_thread = 100,
                       .reads_per_sample = 2,
                       .read_bytes_per_sample = 1e5,
                       .latency_seconds = 0.05,
                       .dataset_bytes = 1e9};
  const Grant grant{.threads = 4, .in_flight = 64, .cache_bytes = 5e8};
  JobFit fit(1e4);
  EXPECT_FALSE(fit.is_known());

  for (int i = 0; i < 5; ++i) {
    fit.observe(report_of(truth, grant, predict(truth, grant).rate, 1), grant);
  }

  EXPECT_TRUE(fit.is_known());
  EXPECT_NEAR(fit.speed().compute_ceiling, 800, 1e-6);
  EXPECT_NEAR(fit.speed().rate_per_thread, 100, 1e-6);
  EXPECT_NEAR(fit.speed().reads_per_sample, 2, 1e-6);
  EXPECT_NEAR(fit.speed().latency_seconds, 0.05, 1e-6);
  EXPECT_NEAR(fit.speed().read_bytes_per_sample, 1e5, 1e-3);
  EXPECT_NEAR(fit.speed().dataset_bytes, 1e9, 1);
  EXPECT_NEAR(fit.predicted_rate(), fit.found_rate(), 1e-6);
  EXPECT_GT(fit.confidence(), 0.9);
}

TEST(JobFitTest, LearnsWhatKeepingDecodedSavesAndTakes) {
  const JobSpeed truth = kDecoded;
  // It fills: the hits, and so the time of a sample, differ each time.
  JobFit fit(1e4);
  for (double held = 0; held <= 4.5e9; held += 0.5e9) {
    const Grant grant{.threads = 4, .in_flight = 64, .cache_bytes = held};
    JobReport report = report_of(truth, grant, predict(truth, grant).rate, 1);
    report.kept_bytes = 6e5;
    fit.observe(report, grant);
    if (held > 0) {
      EXPECT_NEAR(fit.predicted_rate(), fit.found_rate(),
                  0.001 * fit.found_rate());
    }
  }

  EXPECT_NEAR(fit.speed().rate_per_thread, 100, 0.1);
  EXPECT_NEAR(fit.speed().saved_seconds, 0.009, 1e-6);
  EXPECT_NEAR(fit.speed().dataset_bytes, 6e9, 1);
  const Grant all{.threads = 4, .in_flight = 64, .cache_bytes = 6e9};
  EXPECT_NEAR(predict(fit.speed(), all).rate, predict(truth, all).rate, 1);
}

TEST(JobFitTest, TellsWhatItIsLikeWithWhatItsCacheAnswersNow) {
  const JobSpeed truth = kDecoded;
  const Grant grant{.threads = 4, .in_flight = 64, .cache_bytes = 4.5e9};
  JobFit fit(1e4);
  JobReport report = report_of(truth, grant, predict(truth, grant).rate, 1);
  report.kept_bytes = 6e5;
  for (int i = 0; i < 5; ++i) fit.observe(report, grant);

  const JobSpeed found = fit.speed_as_it_hits();

  EXPECT_NEAR(predict(found, grant).rate, predict(truth, grant).rate, 1e-6);
  EXPECT_NEAR(predict(found, {.threads = 4, .in_flight = 64}).rate,
              predict(truth, grant).rate, 1e-6);
}

// It is given a cache for its claim, and hits, and is no faster.
TEST(JobFitTest, WhatHitsDoNotSaveIsNotBelieved) {
  JobSpeed truth = kDecoded;
  truth.saved_seconds = 0;
  JobFit fit(1e4);
  const auto observe = [&](double held) {
    const Grant grant{.threads = 4, .in_flight = 64, .cache_bytes = held};
    JobReport report = report_of(truth, grant, predict(truth, grant).rate, 1);
    report.kept_bytes = 6e5;
    report.saved_seconds = 1e9;
    report.decoded_hits = report.tasks * held / truth.dataset_bytes;
    fit.observe(report, grant);
  };
  for (int i = 0; i < 20; ++i) observe(0);
  EXPECT_NEAR(fit.speed().saved_seconds, 0.01, 1e-9);

  for (int i = 0; i < 20; ++i) observe(4e9);

  EXPECT_NEAR(fit.speed().saved_seconds, 0, 1e-6);
  EXPECT_NEAR(fit.speed().rate_per_thread, 100, 0.1);
  for (int i = 0; i < 1000; ++i) observe(0);
  EXPECT_NEAR(fit.speed().saved_seconds, 0, 1e-6) << "nor ever again";
}

TEST(JobFitTest, ThoseOfWhoHasNotFoundThemOutAreAsTheOthers) {
  const JobReport telling{.kept_bytes = 6e5, .saved_seconds = 0.01};
  const JobReport silent;

  const JobReport all = together(std::vector{telling, silent, telling});

  EXPECT_DOUBLE_EQ(all.kept_bytes, 6e5);
  EXPECT_DOUBLE_EQ(all.saved_seconds, 0.01);
}

TEST(JobFitTest, AHitSavesNoMoreThanThereIs) {
  const JobSpeed truth{.compute_ceiling = 800,
                       .rate_per_thread = 100,
                       .reads_per_sample = 1,
                       .read_bytes_per_sample = 1e5,
                       .dataset_bytes = 1e9};
  const Grant grant{.threads = 4, .in_flight = 64, .cache_bytes = 5e8};
  JobFit fit(1e4);
  JobReport report = report_of(truth, grant, predict(truth, grant).rate, 1);
  report.saved_seconds = 1e9;
  report.decoded_hits = report.tasks / 2;
  for (int i = 0; i < 5; ++i) fit.observe(report, grant);

  EXPECT_NEAR(fit.speed().saved_seconds, 0.02, 1e-9);
  EXPECT_NEAR(fit.speed().rate_per_thread, 50, 1e-6);
}

TEST(JobFitTest, RemembersReadsWhileACacheAnswersAll) {
  JobSpeed truth{.compute_ceiling = 100,
                 .reads_per_sample = 1,
                 .read_bytes_per_sample = 1e5,
                 .latency_seconds = 0.05};
  const Grant grant{.threads = 4, .in_flight = 64};
  JobFit fit(1e4);
  JobReport report = report_of(truth, grant, 100, 1);
  for (int i = 0; i < 5; ++i) fit.observe(report, grant);
  report.reads = report.read_bytes = report.read_seconds = 0;
  report.cache_hits = 100;
  report.cache_misses = 0;

  for (int i = 0; i < 5000; ++i) fit.observe(report, grant);

  EXPECT_NEAR(fit.speed().dataset_bytes, 1e9, 1);
  EXPECT_NEAR(fit.speed().latency_seconds, 0.05, 1e-6);
}

TEST(JobFitTest, WhatIsSlowerThanItsFiguresSayIsCappedAndRecovers) {
  const JobSpeed truth{.compute_ceiling = 1000, .rate_per_thread = 100};
  const Grant grant{.threads = 8, .in_flight = 64};
  JobFit fit(0);
  for (int i = 0; i < 10; ++i) {
    fit.observe(report_of(truth, grant, 200, 1), grant);
  }
  EXPECT_NEAR(fit.speed().compute_ceiling, 204, 4);

  for (int i = 0; i < 10; ++i) {
    fit.observe(report_of(truth, grant, 800, 1), grant);
  }
  EXPECT_GE(fit.speed().compute_ceiling, 800);
}

TEST(JobFitTest, WhatOthersAddToAReadIsNotItsOwn) {
  JobSpeed truth{.reads_per_sample = 1,
                 .read_bytes_per_sample = 1e5,
                 .latency_seconds = 0.04};
  const Grant grant{.in_flight = 16};
  JobFit fit(0);
  const auto observe = [&](double link_load) {
    const double rate = predict(truth, grant).rate;
    fit.observe(report_of(truth, grant, rate, 1), grant,
                {.link_load = link_load});
  };
  for (int i = 0; i < 5; ++i) observe(0.5);

  truth.latency_seconds = 0.06;
  for (int i = 0; i < 20; ++i) observe(0.9);
  EXPECT_NEAR(fit.latency_with_room(), 0.042, 0.0021);
  EXPECT_NEAR(fit.speed().latency_seconds, 0.06, 0.001);

  for (int i = 0; i < 20; ++i) observe(0.5);
  EXPECT_NEAR(fit.latency_with_room(), 0.06, 0.001);
}

TEST(JobFitTest, WhatIsReadAheadIsNotNeededForEachSample) {
  const JobSpeed truth{.compute_ceiling = 50,
                       .reads_per_sample = 1,
                       .read_bytes_per_sample = 1e5};
  JobReport first = report_of(truth, {}, 50, 1);
  first.reads = first.cache_misses = first.tasks = 150;
  first.read_bytes = 150e5;
  JobFit fit(0);

  fit.observe(first, {});

  EXPECT_NEAR(fit.speed().read_bytes_per_sample, 1e5, 1);
}

TEST(JobFitTest, BatchesThatComeInStepsAreNoJumpsOfSpeed) {
  const JobSpeed truth{.reads_per_sample = 1,
                       .read_bytes_per_sample = 1e5,
                       .latency_seconds = 0.1};
  const Grant grant{.in_flight = 8, .bytes_per_second = 3e6};
  JobFit fit(0);
  for (const double batches : {0, 1, 2, 0, 1, 1, 0, 2, 1, 1, 0, 2}) {
    JobReport report = report_of(truth, grant, 30, 1);
    report.samples = 30 * batches;
    fit.observe(report, grant);
    EXPECT_NEAR(fit.found_rate(), 30, 1);
  }

  EXPECT_NEAR(fit.predicted_rate(), 30, 1);
  EXPECT_GT(fit.confidence(), 0.9);
}

TEST(JobFitTest, AJobThatWaitsForItsOtherNodesIsAsWasForetold) {
  JobSpeed seen{.compute_ceiling = 200, .rate_per_thread = 100};
  const Grant grant{.threads = 8};
  const Pace elsewhere{.offered = 200, .reached = 200, .ceiling = 800};
  JobFit fit(0);

  for (int i = 0; i < 20; ++i) {
    fit.observe(report_of(seen, grant, 200, 1), grant,
                {.elsewhere = elsewhere});
  }

  EXPECT_NEAR(fit.predicted_rate(), 200, 1);
  EXPECT_GT(fit.confidence(), 0.9);
  EXPECT_EQ(fit.speed(elsewhere.ceiling).compute_ceiling, 800);
}

TEST(JobFitTest, RisingBeforeItIsHeardFromElsewhereCostsNoConfidence) {
  const JobSpeed truth{.rate_per_thread = 200};
  JobSpeed held = truth;
  held.compute_ceiling = 30;  // Waiting for the others looks like training.
  const Grant grant{.threads = 1};
  const Surroundings around{
      .elsewhere = Pace{.offered = 30, .reached = 30, .ceiling = 500}};
  JobFit fit(0);
  for (int i = 0; i < 20; ++i) {
    fit.observe(report_of(held, grant, 30, 1), grant, around);
  }

  for (int i = 0; i < 3; ++i) {
    fit.observe(report_of(truth, grant, 150, 1), grant, around);
  }

  EXPECT_GT(fit.confidence(), 0.9);
}

}  // namespace
}  // namespace leat
