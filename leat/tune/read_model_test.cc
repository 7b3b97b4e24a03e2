#include "leat/tune/read_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace leat {
namespace {

constexpr double kMB = 1e6;

StageRates reads_of(double bytes, double seconds) {
  StageRates rates;
  rates.bytes_per_read = bytes;
  rates.latency_seconds = seconds;
  return rates;
}

TEST(ReadModel, IsTheLineThroughTwoLengths) {
  const std::optional<ReadModel> model =
      read_model(reads_of(8 * kMB, 4.05), reads_of(2 * kMB, 1.05));

  ASSERT_TRUE(model);
  EXPECT_NEAR(model->latency_seconds, 0.05, 1e-9);
  EXPECT_NEAR(model->seconds_per_byte, 0.5 / kMB, 1e-12);
  EXPECT_NEAR(model->seconds(kMB), 0.55, 1e-9);
}

TEST(ReadModel, OneLengthAloneTellsNothing) {
  EXPECT_FALSE(read_model(reads_of(8 * kMB, 4), reads_of(7 * kMB, 3)));
  EXPECT_FALSE(read_model(reads_of(0, 4), reads_of(8 * kMB, 4)));
  EXPECT_FALSE(read_model(reads_of(8 * kMB, 0), reads_of(0, 0)));
}

TEST(ReadModel, AShorterReadThatTookLongerIsAllLatency) {
  const std::optional<ReadModel> model =
      read_model(reads_of(2 * kMB, 1.2), reads_of(8 * kMB, 1));

  ASSERT_TRUE(model);
  EXPECT_EQ(model->seconds_per_byte, 0);
  EXPECT_EQ(model->latency_seconds, 1.2);
}

// 32 MiB are planned ahead, four connections' worth of parts of 8 MiB.
TEST(BestPart, IsShorterWhereMoreConnectionsAreToBeHad) {
  const ReadModel slow{.latency_seconds = 0.05, .seconds_per_byte = 0.5 / kMB};
  const PartLimits limits{.requests = 16, .bytes = 32 << 20};

  EXPECT_EQ(best_part(slow, limits, 8 << 20, 8 << 20), 2u << 20);
}

TEST(BestPart, IsLongerWhereRequestsAreFewAndBytesAreMany) {
  const ReadModel far{.latency_seconds = 0.1, .seconds_per_byte = 1e-9};
  const PartLimits limits{.requests = 4, .bytes = 1 << 30};

  EXPECT_EQ(best_part(far, limits, 8 << 20, 8 << 20), kMostPartBytes);
}

// The link is full: a part of any length is as fast, and long ones cost less.
TEST(BestPart, OfThoseThatAreAlikeTheLongest) {
  const ReadModel all_latency{.latency_seconds = 1, .seconds_per_byte = 0};
  const PartLimits limits{.requests = 512, .bytes = 32 << 20};

  EXPECT_EQ(best_part(all_latency, limits, 8 << 20, 8 << 20), kMostPartBytes);
}

RC_GTEST_PROP(BestPart, IsWithinItsBoundsAndNoSlower, ()) {
  const ReadModel model{.latency_seconds = *rc::gen::inRange(1, 500) * 1e-3,
                        .seconds_per_byte = *rc::gen::inRange(0, 1000) * 1e-9};
  const PartLimits limits{
      .requests = static_cast<double>(*rc::gen::inRange(1, 512)),
      .bytes = *rc::gen::inRange(1, 1000) * kMB};
  const std::uint64_t part = std::uint64_t{1} << *rc::gen::inRange(20, 27);

  const std::uint64_t best =
      best_part(model, limits, part, static_cast<double>(part));

  RC_ASSERT(best >= kLeastPartBytes);
  RC_ASSERT(best <= kMostPartBytes);
  RC_ASSERT(bytes_a_second(model, limits, static_cast<double>(best)) >=
            0.97 * bytes_a_second(model, limits, static_cast<double>(part)));
}

}  // namespace
}  // namespace leat
