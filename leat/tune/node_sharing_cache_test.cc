#include <gtest/gtest.h>

#include <string>

#include "leat/tune/node_sharing.h"
#include "leat/tune/testing/sharing_world.h"

namespace leat {
namespace {

constexpr JobSpeed kFar{.rate_per_thread = 1000,
                        .reads_per_sample = 1,
                        .read_bytes_per_sample = 1,
                        .latency_seconds = 1,
                        .dataset_bytes = 1000};

JobAsk one_cache_of(double bytes) {
  return {.dataset_samples = 1000,
          .cache = {.ram_bytes = bytes, .disk_bytes = 0},
          .shared_cache = "one"};
}

TEST(NodeSharingCacheTest, BytesOfACacheThatJobsShareCountOnce) {
  SharingWorld world({.threads = 9, .in_flight = 24, .cache_bytes = 1500});
  for (const std::string job : {"a", "b"}) {
    world.come(job, kFar, {}, one_cache_of(1000));
  }
  world.come("c", kFar, {}, {.dataset_samples = 1000});
  world.run(30);

  const double together =
      world.grant_of("a").cache_bytes + world.grant_of("b").cache_bytes;
  EXPECT_NEAR(together, 1000, 1e-6);
  EXPECT_EQ(world.grant_of("a").cache_bytes, world.grant_of("b").cache_bytes);
  EXPECT_NEAR(world.grant_of("c").cache_bytes, 500, 1e-6);
  for (const auto& [id, job] : world.sharing().jobs()) {
    EXPECT_NEAR(job.predict_with(job.grant).rate, world.rate_of(id),
                0.01 * world.rate_of(id))
        << id;
  }
}

TEST(NodeSharingCacheTest, AllWhoShareACacheFillNoMoreThanItMayHold) {
  SharingWorld world({.threads = 8, .in_flight = 16, .cache_bytes = 1500});
  for (const std::string job : {"a", "b"}) {
    world.come(job, kFar, {}, one_cache_of(600));
  }
  world.run(30);

  EXPECT_NEAR(world.grant_of("a").cache_bytes + world.grant_of("b").cache_bytes,
              600, 1e-6);
}

TEST(NodeSharingCacheTest, WhoShareACacheFillEqualPartsOfIt) {
  SharingWorld world({.threads = 9, .in_flight = 24, .cache_bytes = 600});
  JobSpeed slow = kFar;
  slow.compute_ceiling = 1;  // No cache makes it faster.
  world.come("a", slow, {}, one_cache_of(1000));
  world.come("b", kFar, {}, one_cache_of(1000));
  world.come("c", kFar, {}, {.dataset_samples = 1000});
  world.run(30);

  EXPECT_GT(world.grant_of("b").cache_bytes, 100);
  EXPECT_EQ(world.grant_of("a").cache_bytes, world.grant_of("b").cache_bytes);
}

TEST(NodeSharingCacheTest, WhoLeavesACacheLeavesItsPartToTheOthers) {
  SharingWorld world({.threads = 8, .in_flight = 16, .cache_bytes = 600});
  for (const std::string job : {"a", "b"}) {
    world.come(job, kFar, {}, one_cache_of(600));
  }
  world.run(30);
  ASSERT_NEAR(world.grant_of("a").cache_bytes, 300, 1e-6);
  world.go("b");
  world.run(15);
  EXPECT_NEAR(world.grant_of("a").cache_bytes, 600, 1e-6);
}

TEST(NodeSharingCacheTest, WhatIsLeftIsHeldThoughItMakesNobodyFaster) {
  SharingWorld world({.threads = 8, .in_flight = 16, .cache_bytes = 600});
  JobSpeed slow = kFar;
  slow.compute_ceiling = 1;
  const JobAsk ask{.dataset_samples = 1000, .cache = {.ram_bytes = 600}};
  world.come("a", slow, {}, ask);
  world.come("b", slow, {}, ask);
  world.run(30);
  ASSERT_LT(world.grant_of("a").cache_bytes, 600);

  world.go("b");
  world.run(1);

  EXPECT_NEAR(world.grant_of("a").cache_bytes, 600, 1e-6);
}

TEST(NodeSharingCacheTest, ACacheThatIsNotDealtOutCountsByWhatItAnswers) {
  NodeSharing sharing({.threads = 8}, {});
  sharing.arrive("a", {.most_in_flight = 8, .dataset_samples = 1000});
  // Nine of ten samples come from a cache of its own.
  for (int second = 0; second < 10; ++second) {
    sharing.report(
        "a", report_of(kFar, {.threads = 8, .in_flight = 8, .cache_bytes = 900},
                       80, 1));
    sharing.decide(second);
  }
  const SharingJob& job = sharing.jobs().begin()->second;
  EXPECT_NEAR(job.predict_with(job.grant).rate, 80, 0.1);
  EXPECT_NEAR(job.expected_rate, 80, 0.1);
}

TEST(NodeSharingCacheTest, ACacheThatFillsIsForetoldByWhatItAnswersNow) {
  NodeSharing sharing({.threads = 8, .cache_bytes = 900}, {});
  sharing.arrive("a", {.most_in_flight = 8, .dataset_samples = 1000});
  for (int second = 0; second < 10; ++second) {
    sharing.report("a", report_of(kFar, {.threads = 8, .in_flight = 8}, 8, 1));
    sharing.decide(second);
  }
  const SharingJob& job = sharing.jobs().begin()->second;
  EXPECT_NEAR(job.predict_with(job.grant).rate, 80, 0.1);
  EXPECT_NEAR(job.expected_rate, 8, 0.1);
}

}  // namespace
}  // namespace leat
