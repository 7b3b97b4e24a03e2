#include "leat/engine/trace_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

namespace leat {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

/// How many are drawn of batches of `samples`, one each `every`.
std::size_t drawn_of(TracePace& pace, TimePoint& now, std::size_t samples,
                     Nanoseconds every, int batches) {
  std::size_t drawn = 0;
  for (int i = 0; i < batches; ++i) {
    now += every;
    drawn += pace.take(samples, now);
  }
  return drawn;
}

TEST(TracePaceTest, DrawsAllOfALoaderThatIsSlower) {
  TracePace pace;
  TimePoint now = SteadyClock().now();

  // 4,992 a second, for ten minutes.
  EXPECT_EQ(drawn_of(pace, now, 256, microseconds(51282), 11'700),
            256u * 11'700);
}

TEST(TracePaceTest, DrawsTheFirstAndThenSoManyASecond) {
  TracePace pace;
  TimePoint now = SteadyClock().now();

  EXPECT_EQ(drawn_of(pace, now, 100, microseconds(0), 100), 10'000u);
  const std::size_t ten_seconds =
      drawn_of(pace, now, 256, microseconds(1000), 10'000);
  EXPECT_GE(ten_seconds, 49'990u);
  EXPECT_LE(ten_seconds, 50'010u);
}

TEST(TracePaceTest, APauseIsWorthTheFirstOnes) {
  TracePace pace;
  TimePoint now = SteadyClock().now();
  (void)drawn_of(pace, now, 256, microseconds(0), 1000);

  now += seconds(3600);
  EXPECT_EQ(pace.take(100'000, now), 10'000u);
}

TEST(TracePaceTest, OneOfEachBatchIsDrawnWhateverComes) {
  TracePace pace;
  TimePoint now = SteadyClock().now();
  (void)drawn_of(pace, now, 256, microseconds(0), 1000);

  EXPECT_EQ(drawn_of(pace, now, 4, microseconds(10), 1000), 1000u);
  now -= seconds(10);
  EXPECT_EQ(pace.take(1, now), 1u) << "a clock that goes back";
}

}  // namespace
}  // namespace leat
