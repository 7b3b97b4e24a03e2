#include "leat/engine/trace_lanes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace leat {
namespace {

TimePoint at(int milliseconds) {
  return TimePoint() + std::chrono::milliseconds(milliseconds);
}

TEST(TraceLanesTest, ARowIsTakenAgainOnceItsSliceHasEnded) {
  TraceLanes lanes;

  EXPECT_EQ(lanes.take({at(0), at(10)}), 0u);
  EXPECT_EQ(lanes.take({at(5), at(20)}), 1u);
  EXPECT_EQ(lanes.take({at(9), at(30)}), 2u);
  EXPECT_EQ(lanes.take({at(10), at(12)}), 0u);
  EXPECT_EQ(lanes.take({at(25), at(40)}), 0u);
  EXPECT_EQ(lanes.take({at(26), at(40)}), 1u);
  EXPECT_EQ(lanes.take({at(27), at(40)}), 3u);
}

RC_GTEST_PROP(TraceLanesTest, IsTheFirstFreeRowOfAll,
              (const std::vector<std::pair<int, int>>& drawn)) {
  TraceLanes lanes;
  std::vector<TimePoint> busy_until;
  for (const auto& [begin, length] : drawn) {
    const Interval time{at(begin % 100), at(begin % 100 + length % 50)};
    const auto free = std::ranges::find_if(
        busy_until, [&](TimePoint until) { return until <= time.begin; });
    const auto row = static_cast<std::size_t>(free - busy_until.begin());
    if (free == busy_until.end()) busy_until.emplace_back();
    busy_until[row] = time.end;

    RC_ASSERT(lanes.take(time) == row);
  }
}

}  // namespace
}  // namespace leat
