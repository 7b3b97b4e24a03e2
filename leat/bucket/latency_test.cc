#include "leat/bucket/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace leat {
namespace {

using std::chrono::milliseconds;

TEST(LatencyTest, AConstantIsAlwaysTheSame) {
  const Latency latency = *parse_latency("55ms");

  EXPECT_EQ(latency.draw(0, 0), milliseconds(55));
  EXPECT_EQ(latency.draw(7, 9), milliseconds(55));
}

TEST(LatencyTest, ALognormalHasItsMedianAndItsTail) {
  const Latency latency = *parse_latency("lognormal:110ms,0.5");
  std::vector<double> delays_ms;
  for (std::uint64_t n = 0; n < 20'000; ++n) {
    delays_ms.push_back(double(latency.draw(/*seed=*/3, n).count()) * 1e-6);
  }
  std::sort(delays_ms.begin(), delays_ms.end());

  EXPECT_NEAR(delays_ms[10'000], 110.0, 2.0);
  EXPECT_NEAR(delays_ms[19'000], 110.0 * 2.276, 7.0);  // e^(0.5 * 1.645)
  EXPECT_NEAR(delays_ms[1'000], 110.0 / 2.276, 2.0);
}

TEST(LatencyTest, TheSeedDecides) {
  const Latency latency = *parse_latency("lognormal:110ms,0.5");

  EXPECT_EQ(latency.draw(1, 5), latency.draw(1, 5));
  EXPECT_NE(latency.draw(1, 5), latency.draw(2, 5));
  EXPECT_NE(latency.draw(1, 5), latency.draw(1, 6));
}

TEST(LatencyTest, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "55", "-1ms", "2h", "lognormal", "lognormal:", "lognormal:5ms",
        "lognormal:5ms,", "lognormal:5ms,x", "lognormal:5ms,-1",
        "lognormal:5ms,9", "lognormal:5ms,nan", "normal:5ms,1"}) {
    const auto latency = parse_latency(text);
    ASSERT_FALSE(latency) << text;
    EXPECT_EQ(latency.error().code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace leat
