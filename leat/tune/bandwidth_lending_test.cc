#include "leat/tune/bandwidth_lending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace leat {
namespace {

using ::testing::Each;

constexpr double kLink = 16e6;
const NodeResources kNode{.threads = 4, .bytes_per_second = kLink};

/// Reads 1 kB a sample.
Claim reader(double ceiling, double worth = 1) {
  return {.speed = {.compute_ceiling = ceiling, .read_bytes_per_sample = 1000},
          .worth = worth};
}

std::vector<Grant> limited_to(const std::vector<double>& limits) {
  std::vector<Grant> grants;
  for (const double limit : limits) {
    grants.push_back({.threads = 1, .bytes_per_second = limit});
  }
  return grants;
}

std::vector<double> lend(const std::vector<Claim>& claims,
                         const std::vector<double>& present,
                         const std::vector<double>& read) {
  const double sum = std::accumulate(read.begin(), read.end(), 0.0);
  std::vector<LinkReading> readings;
  for (const double one : read) {
    readings.push_back(
        {.bytes_per_second = one, .is_full = sum >= 0.97 * kLink});
  }
  return lend_bandwidth(kNode, claims, limited_to(present), readings, {});
}

Claim of_bucket(std::size_t bucket, Claim claim) {
  claim.buckets = {bucket};
  return claim;
}

TEST(BandwidthLendingTest, OnlyWhoReadsAFullBucketIsHeld) {
  const NodeResources node{.threads = 4,
                           .bytes_per_second = kLink,
                           .bucket_bytes_per_second = {4e6, 8e6}};
  // The first bucket is wanted by two that need more than it brings; the second
  // and the link have room.
  const std::vector<Claim> claims = {of_bucket(0, reader(1000)),
                                     of_bucket(0, reader(50000)),
                                     of_bucket(1, reader(2000)), reader(3000)};
  const std::vector<LinkReading> readings = {
      {1e6, true}, {2e6, true}, {2e6, false}, {3e6, false}};

  const auto limits = lend_bandwidth(
      node, claims, limited_to({2e6, 2e6, 4e6, 4e6}), readings, {});

  EXPECT_GE(limits[0], 1.2e6);
  EXPECT_NEAR(limits[1], 3e6, 1e5);
  EXPECT_EQ(limits[2], 8e6) << "all of its bucket";
  EXPECT_EQ(limits[3], kLink);
}

TEST(BandwidthLendingTest, RequestsOfWhoIsHeldBackAreNotAnothers) {
  const NodeResources node{
      .threads = 4, .in_flight = 200, .bucket_bytes_per_second = {20e6, 39e6}};
  const auto far_reader = [](std::size_t bucket) {
    return Claim{.speed = {.compute_ceiling = 1000,
                           .reads_per_sample = 1,
                           .read_bytes_per_sample = 1e6,
                           .latency_seconds = 2},
                 .buckets = {bucket}};
  };
  const std::vector<Claim> claims = {far_reader(0), far_reader(1),
                                     far_reader(1)};
  std::vector<Grant> grants = limited_to({20e6, 39e6, 39e6});
  grants[0].in_flight = 60;
  grants[1].in_flight = 80;
  grants[2].in_flight = 60;
  const std::vector<LinkReading> readings = {
      {20e6, true}, {38e6, true}, {38e6, true}};

  const auto limits = lend_bandwidth(node, claims, grants, readings, {});

  EXPECT_NEAR(limits[0], 20e6, 1);
  EXPECT_NEAR(limits[1] + limits[2], 39e6, 1);
}

TEST(BandwidthLendingTest, WhatHasNoLimitIsNotLimited) {
  const NodeResources node{.threads = 4, .bucket_bytes_per_second = {4e6}};
  const std::vector<Claim> claims = {of_bucket(0, reader(9000)), reader(9000)};
  const std::vector<LinkReading> readings = {{3e6, true}, {9e6, false}};

  const auto limits = lend_bandwidth(
      node, claims, limited_to({kUnbounded, kUnbounded}), readings, {});

  EXPECT_EQ(limits[0], 4e6);
  EXPECT_EQ(limits[1], kUnbounded);
  EXPECT_EQ(lend_bandwidth(node, claims, limited_to(limits), readings, {}),
            limits);
}

TEST(BandwidthLendingTest, WhereAllHaveEnoughNobodyIsLimited) {
  const std::vector<Claim> claims = {reader(2000), reader(9000)};

  EXPECT_THAT(lend(claims, {8e6, 8e6}, {2e6, 8e6}), Each(kLink));
}

TEST(BandwidthLendingTest, OnlyThoseThatRunShortAreHeldToTheirPart) {
  // The first needs an eighth of the link and the others more than the rest.
  const std::vector<Claim> claims = {reader(2000), reader(12000),
                                     reader(12000, 0.5)};

  const auto limits = lend(claims, {8e6, 8e6, 8e6}, {2e6, 8e6, 8e6});

  EXPECT_GE(limits[0], 1.2 * 2e6);
  EXPECT_GE(limits[1], 11.2e6);  // But for the floor of the third.
  EXPECT_NEAR(limits[2], 16e6 - 2e6 - 12e6, 1e6);
}

TEST(BandwidthLendingTest, WhoIsBoundByNothingElseRunsShort) {
  const Claim only = reader(kUnbounded);
  const auto limits =
      lend({reader(2000), only, only}, {16e6, 7e6, 6e6}, {2e6, 7e6, 6e6});

  EXPECT_NEAR(limits[1] + limits[2], 14e6, 1e5);
}

TEST(BandwidthLendingTest, WhatAJobDoesNotReadOthersHave) {
  // By its figures the first would read 12 MB/s.
  const std::vector<Claim> claims = {reader(12000), reader(14000)};

  const auto both = lend(claims, {12e6, 4e6}, {11.9e6, 4e6});
  EXPECT_NEAR(both[0] + both[1], kLink, 1);

  const auto lent = lend(claims, {12e6, 4e6}, {1e6, 4e6});
  EXPECT_GE(lent[1], 14e6);
  EXPECT_GE(lent[0], 12e6) << "it may come back at once";
}

TEST(BandwidthLendingTest, WhoComesBackIsKeptMoreEachTime) {
  const std::vector<Claim> claims = {reader(12000), reader(14000, 0.5)};
  std::vector<double> limits = {12e6, 14e6};
  double reads = 1e6;
  for (int second = 0; second < 12; ++second) {
    limits = lend(claims, limits, {reads, limits[1]});
    reads = std::min(12e6, kLink - limits[1]);
  }

  EXPECT_GE(reads, 11.5e6);
}

TEST(BandwidthLendingTest, LimitsRestWhileNobodyWouldGain) {
  const std::vector<Claim> claims = {reader(2000), reader(20000)};
  const auto limits = lend(claims, {8e6, 8e6}, {2e6, 8e6});

  for (const double noise : {0.98, 1.0, 1.02}) {
    EXPECT_EQ(lend(claims, limits, {noise * 2e6, limits[1]}), limits);
  }
}

TEST(BandwidthLendingTest, WhatIsNotYetKnownHasAnEqualPartAndWhatIsLeft) {
  const std::vector<Claim> unknown = {reader(20000), Claim{}};
  const auto short_of = lend(unknown, {16e6, 8e6}, {16e6, 1e6});
  EXPECT_EQ(short_of[1], kLink / 2);
  EXPECT_NEAR(short_of[0], kLink - 1.25e6, 1e4);

  const std::vector<Claim> light = {reader(1000), Claim{}};
  const auto greedy = lend(light, {16e6, 16e6}, {1e6, 15e6});
  EXPECT_GE(greedy[0], kLink / 2);
  EXPECT_LE(greedy[1], kLink - 1e6);
  EXPECT_GE(greedy[1], kLink - 2e6);

  EXPECT_THAT(lend(light, {8e6, 8e6}, {1e6, 1e6}), Each(kLink));
}

RC_GTEST_PROP(BandwidthLendingProperty, WhoRunsShortKeepsItsFloorAndOthersRoom,
              (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<Claim> claims;
  std::vector<double> read;
  std::vector<double> present;
  const std::size_t count = 2 + random() % 6;
  for (std::size_t i = 0; i < count; ++i) {
    claims.push_back(random() % 8 == 0 ? Claim{}
                                       : reader(100 + 20000 * part(random),
                                                0.25 + 0.75 * part(random)));
    present.push_back(kLink * (0.01 + part(random)));
    read.push_back(present[i] * part(random));
  }
  const auto limits = lend(claims, present, read);
  if (limits == present) return;

  double held = 0;
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(limits[i] >= 1);
    RC_ASSERT(limits[i] <= kLink);
    const bool is_known = claims[i].speed.compute_ceiling < kUnbounded;
    const double need = 1000 * claims[i].speed.compute_ceiling;
    if (is_known && limits[i] < std::min(need, kLink)) {
      held += limits[i];
      const bool was_held = read[i] >= 0.95 * present[i];
      const double floor = 0.5 * std::min(need, kLink / double(count));
      if (was_held) RC_ASSERT(limits[i] >= floor * (1 - 1e-6));
    }
  }
  RC_ASSERT(held <= kLink * (1 + 1e-6));
}

}  // namespace
}  // namespace leat
