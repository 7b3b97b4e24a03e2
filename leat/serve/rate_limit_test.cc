#include "leat/serve/rate_limit.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

using std::chrono::milliseconds;

TEST(RateLimitTest, PiecesFollowOneAnotherAtTheRate) {
  RateLimit limit(/*bytes_per_second=*/1'000'000);
  const TimePoint start{milliseconds(5)};

  EXPECT_EQ(limit.reserve(2'000, start), start);
  EXPECT_EQ(limit.reserve(1'000, start), start + milliseconds(2));
  EXPECT_EQ(limit.reserve(1'000, start), start + milliseconds(3));
}

TEST(RateLimitTest, IdleTimeIsNotSavedUp) {
  RateLimit limit(/*bytes_per_second=*/1'000'000);
  const TimePoint start{milliseconds(5)};
  (void)limit.reserve(1'000, start);

  const TimePoint later = start + milliseconds(100);
  EXPECT_EQ(limit.reserve(1'000, later), later);
  EXPECT_EQ(limit.reserve(1'000, later), later + milliseconds(1));
}

TEST(RateLimitTest, ASenderThatIsWokenLateCatchesUp) {
  RateLimit limit(/*bytes_per_second=*/1'000'000);
  const TimePoint start{milliseconds(5)};

  // Each piece is sent 7 ms late, and the rate is kept all the same.
  TimePoint ready = start;
  for (int i = 0; i < 10; ++i) ready = limit.reserve(2'000, ready);

  EXPECT_EQ(ready, start + milliseconds(18));
}

TEST(RateLimitTest, PiecesAreTwoMillisecondsWithinLimits) {
  EXPECT_EQ(RateLimit(10'000'000).piece_bytes(), 20'000u);
  EXPECT_EQ(RateLimit(1).piece_bytes(), 1u << 10);
  EXPECT_EQ(RateLimit(100'000'000'000).piece_bytes(), 256u << 10);
}

}  // namespace
}  // namespace leat
