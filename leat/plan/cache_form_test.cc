#include "leat/plan/cache_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace leat {
namespace {

using ::testing::HasSubstr;

/// A photograph: 100 kB, six times that decoded, 5 ms of a core, 1 of them
/// behind the cut.
constexpr FormCosts kPhotograph = {.encoded_bytes = 100e3,
                                   .decoded_bytes = 600e3,
                                   .fetch_seconds = 1e-3,
                                   .whole_seconds = 5e-3,
                                   .before_seconds = 4.2e-3,
                                   .rest_seconds = 1e-3};

/// One whose bucket, and not a core, is what training would wait for.
FormCosts slow_bucket() {
  FormCosts costs = kPhotograph;
  costs.fetch_seconds = 20e-3;
  return costs;
}

FormLimits with_cache(double bytes) {
  return {.samples = 1000, .cache_bytes = bytes, .cores = 4};
}

TEST(CacheFormTest, WhereAllFitsDecodedItSavesTheDecoding) {
  const FormChoice choice = choose_form(kPhotograph, with_cache(600e6));

  EXPECT_EQ(choice.decoded_share, 1);
  EXPECT_EQ(choice.hit_share, 1);
  EXPECT_DOUBLE_EQ(choice.seconds, 1e-3 / 4);
  EXPECT_DOUBLE_EQ(choice.core_seconds, 1e-3);
}

TEST(CacheFormTest, WhereAllFitsAsBytesTheRestOfTheRoomIsForDecodedOnes) {
  const FormChoice choice = choose_form(slow_bucket(), with_cache(350e6));

  EXPECT_EQ(choice.hit_share, 1);
  EXPECT_DOUBLE_EQ(choice.decoded_share, 0.5);
  EXPECT_DOUBLE_EQ(choice.core_seconds, 0.5 * 1e-3 + 0.5 * 5e-3);
}

TEST(CacheFormTest, WithoutAMixTheBetterOfTheTwoIsTaken) {
  FormLimits limits = with_cache(550e6);
  limits.may_mix = false;

  EXPECT_EQ(choose_form(kPhotograph, limits).decoded_share, 1);

  limits.cache_bytes = 50e6;  // A hit in twelve does not pay for the rest.
  EXPECT_EQ(choose_form(slow_bucket(), limits).decoded_share, 0);
}

TEST(CacheFormTest, WhereTheBucketIsTheLimitBytesHitMore) {
  const FormChoice choice = choose_form(slow_bucket(), with_cache(60e6));

  EXPECT_EQ(choice.decoded_share, 0);
  EXPECT_DOUBLE_EQ(choice.hit_share, 0.6);
  EXPECT_DOUBLE_EQ(choice.seconds, 0.4 * 20e-3);
}

TEST(CacheFormTest, WhereTheCoresAreTheLimitAFewDecodedOnesStillHelp) {
  FormCosts cheap = kPhotograph;
  cheap.fetch_seconds = 0;

  // Too little for all bytes, and nobody waits for those.
  const FormChoice choice = choose_form(cheap, with_cache(60e6));

  EXPECT_GT(choice.decoded_share, 0);
  EXPECT_LT(choice.seconds, predict_form(cheap, with_cache(60e6), 0).seconds);
}

TEST(CacheFormTest, WhereTheDiskIsTheLimitSmallRecordsComeFaster) {
  FormLimits limits = with_cache(600e6);
  limits.hit_bytes_per_second = 100e6;

  const FormChoice choice = choose_form(kPhotograph, limits);

  EXPECT_DOUBLE_EQ(predict_form(kPhotograph, limits, 1).seconds, 6e-3);
  EXPECT_LT(choice.decoded_share, 0.25);
  EXPECT_LT(choice.seconds, 1.3e-3);
}

TEST(CacheFormTest, WhereDecodingIsCheapBytesStay) {
  FormCosts cheap = kPhotograph;
  cheap.before_seconds = 0.1e-3;
  cheap.whole_seconds = 1e-3;

  EXPECT_EQ(choose_form(cheap, with_cache(600e6)).decoded_share, 0);
}

// To write all records takes 0.3 ms a sample more at first, and saves 1 later.
TEST(CacheFormTest, RecordsThatNoEpochIsLeftToReadAreNotMade) {
  FormCosts costs = kPhotograph;
  costs.before_seconds = 5.2e-3;
  FormLimits limits = with_cache(600e6);

  limits.epochs = 1;
  EXPECT_EQ(choose_form(costs, limits).decoded_share, 0);
  limits.epochs = 2;
  EXPECT_EQ(choose_form(costs, limits).decoded_share, 1);

  costs.before_seconds = 10.2e-3;  // 1.55 ms more at first.
  EXPECT_EQ(choose_form(costs, limits).decoded_share, 0);
  limits.epochs = 6;
  const FormChoice choice = choose_form(costs, limits);
  EXPECT_EQ(choice.decoded_share, 1);
  EXPECT_DOUBLE_EQ(choice.first_seconds, 11.2e-3 / 4);
  EXPECT_THAT(explain_form(costs, limits, choice),
              HasSubstr("the first of 6 epochs: encoded 1.25 ms a sample, "
                        "decoded 2.80"));
}

// Fetching is the slow part at first; then cores decide.
TEST(CacheFormTest, AnEpochThatWaitsForTheBucketMakesThemForNothing) {
  FormLimits limits = with_cache(600e6);
  limits.epochs = 2;

  EXPECT_EQ(choose_form(slow_bucket(), limits).decoded_share, 1);

  limits.epochs = 1;
  EXPECT_EQ(choose_form(slow_bucket(), limits).decoded_share, 0);
}

TEST(CacheFormTest, SaysWhatItChoseAndWhy) {
  const FormLimits limits = with_cache(350e6);

  const std::string text =
      explain_form(slow_bucket(), limits, choose_form(slow_bucket(), limits));

  EXPECT_THAT(text, HasSubstr("decoded for 50 % of the samples"));
  EXPECT_THAT(text, HasSubstr("1000 samples"));
  EXPECT_THAT(text, HasSubstr("encoded: hits 100 %"));
  EXPECT_THAT(text, HasSubstr("decoded: hits 58 %"));
}

RC_GTEST_PROP(CacheFormTest, IsNeverWorseThanEitherFormAlone, ()) {
  const auto upto = [](int most) { return *rc::gen::inRange(1, most) * 1e-5; };
  const FormCosts costs = {.encoded_bytes = 1e8 * upto(1000),
                           .decoded_bytes = 1e8 * upto(9000),
                           .fetch_seconds = upto(5000),
                           .whole_seconds = upto(1000),
                           .before_seconds = upto(1000),
                           .rest_seconds = upto(1000)};
  const FormLimits limits = {
      .samples = *rc::gen::inRange<std::uint64_t>(1, 1'000'000),
      .cache_bytes = 1e13 * upto(1000),
      .cores = static_cast<double>(*rc::gen::inRange(1, 64))};

  const FormChoice choice = choose_form(costs, limits);

  RC_ASSERT(choice.decoded_share >= 0 && choice.decoded_share <= 1);
  RC_ASSERT(choice.hit_share > 0 && choice.hit_share <= 1);
  for (const double share : {0.0, 1.0}) {
    RC_ASSERT(choice.seconds <=
              predict_form(costs, limits, share).seconds * 1.0201);
  }
}

}  // namespace
}  // namespace leat
