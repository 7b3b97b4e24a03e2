#include "leat/metrics/rolling_stalls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <random>

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StallTimes storage(Nanoseconds time) { return {Stall::kStorage, time}; }

TEST(RollingStallsTest, TheBeginningIsToldOfAsLongAsItWas) {
  const TimePoint begun = TimePoint(seconds(1000));
  RollingStalls rolling(begun);
  EXPECT_EQ(rolling.recent(begun).elapsed, Nanoseconds(0));

  rolling.add(begun + milliseconds(300), storage(milliseconds(200)), 32);
  rolling.add(begun + milliseconds(2700), storage(milliseconds(100)), 32);

  const RecentStalls recent = rolling.recent(begun + seconds(3));
  EXPECT_EQ(recent.elapsed, seconds(3));
  EXPECT_EQ(recent.samples, 64u);
  EXPECT_EQ(recent.stalls[Stall::kStorage], milliseconds(300));
}

TEST(RollingStallsTest, WhatIsOlderThanAMinuteIsForgotten) {
  const TimePoint begun = TimePoint(seconds(7));
  RollingStalls rolling(begun);
  rolling.add(begun, storage(seconds(5)), 1);

  EXPECT_EQ(rolling.recent(begun + milliseconds(59'900)).samples, 1u);
  EXPECT_EQ(rolling.recent(begun + seconds(60)).samples, 0u);
  // Nobody overwrote its second: it was idle meanwhile.
  EXPECT_EQ(rolling.recent(begun + seconds(600)).stalls.total(),
            Nanoseconds(0));
  EXPECT_EQ(rolling.recent(begun + seconds(600)).elapsed, seconds(59));
}

TEST(RollingStallsTest, IsTheSumOfWhatWasAddedInThoseSeconds) {
  std::mt19937 random(3);
  const TimePoint begun = TimePoint(seconds(50));
  RollingStalls rolling(begun);
  std::deque<std::pair<TimePoint, std::uint64_t>> all;
  TimePoint now = begun;
  for (int i = 0; i < 3000; ++i) {
    now += milliseconds(random() % (i % 100 == 0 ? 90'000 : 700));
    const std::uint64_t samples = random() % 50;
    rolling.add(now, storage(milliseconds(samples)), samples);
    all.emplace_back(now, samples);

    const RecentStalls recent = rolling.recent(now);
    std::uint64_t expected = 0;
    for (const auto& [at, count] : all) {
      if (at >= now - recent.elapsed) expected += count;
    }
    ASSERT_EQ(recent.samples, expected);
    ASSERT_EQ(recent.stalls[Stall::kStorage], milliseconds(expected));
    ASSERT_LE(recent.elapsed, seconds(60));
    if (all.size() > 200) all.pop_front();
  }
}

}  // namespace
}  // namespace leat
