#include "leat/profile/lateness.h"

#include <gtest/gtest.h>

#include <array>

namespace leat {
namespace {

constexpr std::size_t kRanks = 4;
constexpr std::size_t kSteps = 10;

/// Steps of 0.1 s, in which each rank waits 1 ms and works 20 ms.
std::array<RankSteps, kRanks> even() {
  std::array<RankSteps, kRanks> ranks;
  for (RankSteps& rank : ranks) {
    rank.seconds = 0.1 * kSteps;
    rank.waits.assign(kSteps, 0.001);
    rank.causes.assign(kSteps, "handover");
    rank.own.assign(kSteps, 0.02);
  }
  return ranks;
}

std::optional<LateRank> worst_of(const std::array<RankSteps, kRanks>& ranks) {
  Lateness lateness;
  lateness.add(ranks);
  return lateness.worst();
}

TEST(LatenessTest, OfEvenRanksIsNobodys) {
  EXPECT_FALSE(worst_of(even()).has_value());
}

TEST(LatenessTest, IsOfWhoWaitsForItsBatchAndOfWhatItWaitsFor) {
  auto ranks = even();
  ranks[2].waits.assign(kSteps, 0.051);
  ranks[2].causes.assign(kSteps, "storage");

  const auto worst = worst_of(ranks);

  ASSERT_TRUE(worst.has_value());
  EXPECT_EQ(worst->rank, 2u);
  EXPECT_EQ(worst->cause, "storage");
  EXPECT_NEAR(worst->fraction, 0.5, 1e-9);
}

TEST(LatenessTest, IsOfWhoComputesLonger) {
  auto ranks = even();
  ranks[1].own.assign(kSteps, 0.05);

  const auto worst = worst_of(ranks);

  ASSERT_TRUE(worst.has_value());
  EXPECT_EQ(worst->rank, 1u);
  EXPECT_EQ(worst->cause, "compute");
  EXPECT_NEAR(worst->fraction, 0.3, 1e-9);
}

// A rank that computes longer has its batches ready and waits less.
TEST(LatenessTest, TakesOfBothWhatIsFurtherBeyondTheOthers) {
  auto ranks = even();
  for (RankSteps& rank : ranks) rank.waits.assign(kSteps, 0.010);
  ranks[3].waits.assign(kSteps, 0.0);
  ranks[3].own.assign(kSteps, 0.06);

  const auto worst = worst_of(ranks);

  ASSERT_TRUE(worst.has_value());
  EXPECT_EQ(worst->rank, 3u);
  EXPECT_EQ(worst->cause, "compute");
  EXPECT_NEAR(worst->fraction, 0.3, 1e-9);
}

TEST(LatenessTest, WithoutTheWorkOfAllRanksOnlyWaitsTell) {
  auto ranks = even();
  ranks[1].own.assign(kSteps, 0.05);
  ranks[0].own.clear();
  EXPECT_FALSE(worst_of(ranks).has_value());

  ranks[2].waits.assign(kSteps, 0.051);
  ranks[2].causes.assign(kSteps, "decode");
  const auto worst = worst_of(ranks);
  ASSERT_TRUE(worst.has_value());
  EXPECT_EQ(worst->rank, 2u);
  EXPECT_EQ(worst->cause, "decode");
}

TEST(LatenessTest, ThatGoesAroundIsChance) {
  auto ranks = even();
  for (std::size_t step = 0; step < kSteps; ++step) {
    ranks[step % kRanks].waits[step] = 0.05;
  }
  EXPECT_FALSE(worst_of(ranks).has_value());
}

TEST(LatenessTest, NamesTheCauseThatCostMost) {
  auto ranks = even();
  ranks[2].waits.assign(kSteps, 0.031);
  ranks[2].causes.assign(kSteps, "storage");
  for (std::size_t step = 0; step < 3; ++step) {
    ranks[2].causes[step] = "throttled";
    ranks[2].waits[step] = 0.091;  // 0.27 s in all, and storage 0.21.
  }
  const auto worst = worst_of(ranks);
  ASSERT_TRUE(worst.has_value());
  EXPECT_EQ(worst->cause, "throttled");
}

TEST(LatenessTest, LeavesOutStepsThatSomeRankHasNot) {
  auto ranks = even();
  ranks[0].waits.resize(4);
  ranks[0].seconds = 0.4;
  for (std::size_t step = 4; step < kSteps; ++step) {
    ranks[2].waits[step] = 0.09;
  }
  Lateness lateness;
  lateness.add(ranks);
  EXPECT_EQ(lateness.steps(), 4u);
  EXPECT_FALSE(lateness.worst().has_value());
}

TEST(LatenessTest, OfOneRankOrNoStepsIsNobodys) {
  Lateness lateness;
  lateness.add({});
  lateness.add(std::array<RankSteps, 1>{even()[0]});
  lateness.add(std::array<RankSteps, 2>{});
  EXPECT_EQ(lateness.steps(), 0u);
  EXPECT_FALSE(lateness.worst().has_value());
}

}  // namespace
}  // namespace leat
