#include "leat/engine/carbon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "leat/engine/ledger.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

TEST(CarbonTest, EachShippedFigureHasASource) {
  for (const char* region :
       {"eu-west-1", "us-east-1", "europe-west4", "DEU", "world"}) {
    const auto carbon = carbon_of(region);

    ASSERT_TRUE(carbon) << carbon.error().message();
    EXPECT_EQ(carbon->grams_per_kwh.size(), 1u);
    EXPECT_GT(carbon->grams_per_kwh[0], 0);
    EXPECT_FALSE(carbon->source.empty());
    EXPECT_FALSE(carbon->as_of.empty());
  }
}

TEST(CarbonTest, ARegionThatNobodyKnowsIsRefusedWithThoseThatAre) {
  const auto none = carbon_of("atlantis");

  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(none.error().message(), HasSubstr("atlantis"));
  EXPECT_THAT(none.error().message(), HasSubstr("europe-west4"));
}

std::string by_hour(int hours) {
  std::string text = "[mine]\nsource = \"us\"\n[mine.grams_per_kwh]\nhere = [";
  for (int i = 0; i < hours; ++i) text += std::to_string(100 * i) + ", ";
  return text + "]\n";
}

TEST(CarbonTest, ADayHas24Hours) {
  EXPECT_TRUE(carbon_of("here", by_hour(24), "mine.toml"));
  for (const std::string& wrong :
       {by_hour(23), std::string("[a]\nsource=\"x\"\ngrams_per_kwh={here=-1}"),
        std::string("here = 3"),
        std::string("[a]\nsource=\"x\"\ngrams_per_kwh={here=\"much\"}")}) {
    const auto refused = carbon_of("here", wrong, "mine.toml");

    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("mine.toml"));
  }
}

TEST(CarbonTest, ARunTakesTheMeanOfItsHours) {
  const auto here = carbon_of("here", by_hour(24), "mine.toml");
  ASSERT_TRUE(here);
  constexpr double kHour = 3600;
  constexpr double kDay = 24 * kHour;

  // Half an hour of 23 and a whole one of 0, on the 101st day.
  EXPECT_DOUBLE_EQ(
      mean_grams_per_kwh(*here, 100 * kDay + 23.5 * kHour, 1.5 * kHour),
      2300 * 0.5 / 1.5);
  EXPECT_DOUBLE_EQ(mean_grams_per_kwh(*here, 5 * kHour, 3 * kDay), 1150);
  EXPECT_DOUBLE_EQ(mean_grams_per_kwh(*here, 7.9 * kHour, 0), 700);
}

TEST(CarbonTest, EnergyIsMeasuredOrElseModelledAndSaysWhich) {
  const PowerModel power{.processor_core_watts = 10, .memory_watts = 20};
  LedgerCounts counts;
  EXPECT_FALSE(energy_of(counts, power).is_known);
  counts.seconds = 3600;
  counts.processor_seconds = 7200;

  const LedgerEnergy modelled = energy_of(counts, power);
  counts.processor_joules = 3.6e6;
  counts.accelerator_joules = 7.2e6;
  const LedgerEnergy measured = energy_of(counts, power);

  EXPECT_FALSE(modelled.are_processors_measured);
  EXPECT_DOUBLE_EQ(modelled.kwh, 0.02 + 0.02);
  EXPECT_TRUE(measured.are_processors_measured);
  EXPECT_DOUBLE_EQ(measured.kwh, 1 + 0.02 + 2);
}

}  // namespace
}  // namespace leat
