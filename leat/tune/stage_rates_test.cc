#include "leat/tune/stage_rates.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

Observation later() {
  Observation now;
  now.at_seconds = 12;
  now.samples = 1000;
  now.batches = 10;
  now.wait_seconds = 1.5;
  now.storage_wait_seconds = 1;
  now.memory_wait_seconds = 0.5;
  now.training_seconds = 0.5;
  now.reads = 500;
  now.read_bytes = 5000000;
  now.read_seconds = 10;
  now.tasks = 800;
  now.busy_seconds = 1.6;
  now.cpu_seconds = 0.8;
  now.cache_hits = 300;
  now.cache_misses = 100;
  return now;
}

Observation earlier() {
  Observation then;
  then.at_seconds = 10;
  return then;
}

TEST(StageRates, AreDifferencesOverTime) {
  const StageRates rates = rates_between(earlier(), later());

  EXPECT_DOUBLE_EQ(rates.seconds, 2);
  EXPECT_EQ(rates.samples, 800u);
  EXPECT_DOUBLE_EQ(rates.samples_per_second, 400);
  EXPECT_DOUBLE_EQ(rates.wait_share, 0.75);
  EXPECT_DOUBLE_EQ(rates.storage_share, 0.5);
  EXPECT_DOUBLE_EQ(rates.memory_share, 0.25);
  EXPECT_DOUBLE_EQ(rates.training_rate.value(), 2000);
  EXPECT_DOUBLE_EQ(rates.reads_per_sample, 0.625);
  EXPECT_DOUBLE_EQ(rates.latency_seconds, 0.02);
  EXPECT_DOUBLE_EQ(rates.mean_in_flight, 5);
  EXPECT_DOUBLE_EQ(rates.bytes_per_read, 10000);
  EXPECT_DOUBLE_EQ(rates.hit_share, 0.75);
  EXPECT_DOUBLE_EQ(rates.task_seconds, 0.002);
  EXPECT_DOUBLE_EQ(rates.mean_busy_threads, 0.8);
  EXPECT_DOUBLE_EQ(rates.per_request().value(), 80);
  EXPECT_DOUBLE_EQ(rates.per_thread().value(), 500);
  EXPECT_DOUBLE_EQ(rates.per_core().value(), 1000);
}

TEST(StageRates, WithoutTasksAreOfWhatWasDelivered) {
  Observation now = later();
  now.tasks = 0;
  now.busy_seconds = 0;

  const StageRates rates = rates_between(earlier(), now);

  EXPECT_DOUBLE_EQ(rates.samples_per_second, 500);
  EXPECT_FALSE(rates.per_thread());
  EXPECT_FALSE(rates.per_core());
}

TEST(StageRates, OfNothingAreNothing) {
  const StageRates rates = rates_between(later(), later());

  EXPECT_EQ(rates.samples_per_second, 0);
  EXPECT_EQ(rates.wait_share, 0);
  EXPECT_FALSE(rates.training_rate);
  EXPECT_FALSE(rates.per_request());
}

TEST(StageRates, CountersThatFellCountAsNone) {
  const StageRates rates = rates_between(later(), earlier());

  EXPECT_EQ(rates.samples, 0u);
  EXPECT_EQ(rates.mean_in_flight, 0);
}

}  // namespace
}  // namespace leat
