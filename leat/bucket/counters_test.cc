#include "leat/bucket/counters.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

using std::chrono::microseconds;

TEST(DurationHistogramTest, QuantilesAreWithinTwoPercent) {
  DurationHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(microseconds(i));

  EXPECT_NEAR(double(histogram.quantile(0.5).count()), 500e3, 10e3);
  EXPECT_NEAR(double(histogram.quantile(0.95).count()), 950e3, 19e3);
  EXPECT_EQ(histogram.quantile(1.0), microseconds(1000));
  EXPECT_EQ(histogram.max(), microseconds(1000));
}

TEST(DurationHistogramTest, TakesAnyDuration) {
  DurationHistogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), Nanoseconds(0));
  histogram.add(Nanoseconds(-5));
  histogram.add(Nanoseconds(0));
  histogram.add(Nanoseconds(3));
  histogram.add(Nanoseconds::max());

  EXPECT_EQ(histogram.max(), Nanoseconds::max());
  EXPECT_LE(histogram.quantile(0.5), Nanoseconds(2));
}

bool says(const BucketCounters& counters, std::string_view what) {
  return counters.json({}).find(what) != std::string::npos;
}

TEST(BucketCountersTest, CountsWhatRepeatsSinceTheReset) {
  BucketCounters counters;
  for (const std::uint64_t object : {1, 2, 1}) {
    counters.begin(RequestKind::kGet);
    counters.served(object, 10);
    counters.end();
  }
  EXPECT_TRUE(says(counters, R"("get": 3,)"));
  EXPECT_TRUE(says(counters, R"("bytes": 30,)"));
  EXPECT_TRUE(says(counters, R"("repeated_keys": 1,)"));

  counters.reset();
  counters.begin(RequestKind::kGet);
  counters.served(1, 10);

  EXPECT_TRUE(says(counters, R"("get": 1,)"));
  EXPECT_TRUE(says(counters, R"("repeated_keys": 0,)"));
}

TEST(BucketCountersTest, SaysHowOftenItCouldNotTellARepeat) {
  BucketCounters counters(/*most_remembered=*/2);
  for (const std::uint64_t object : {1, 2, 3, 3, 1}) counters.served(object, 1);

  EXPECT_TRUE(says(counters, R"("repeated_keys": 1,)"));
  EXPECT_TRUE(says(counters, R"("keys_not_remembered": 2,)"));

  counters.reset();
  EXPECT_TRUE(says(counters, R"("keys_not_remembered": 0,)"));
}

TEST(BucketCountersTest, RemembersTheMostInFlight) {
  BucketCounters counters;
  counters.begin(RequestKind::kGet);
  counters.begin(RequestKind::kHead);
  counters.end();
  counters.begin(RequestKind::kList);
  EXPECT_TRUE(says(counters, R"("most_in_flight": 2,)"));

  counters.end();
  counters.reset();

  EXPECT_TRUE(says(counters, R"("in_flight": 1, "most_in_flight": 1,)"));
}

}  // namespace
}  // namespace leat
