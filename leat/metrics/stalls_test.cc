#include "leat/metrics/stalls.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TimePoint at(int ns) { return TimePoint(Nanoseconds(ns)); }

SampleTimes sample() {
  return {.reserved = at(10),
          .fetched = at(60),
          .decoded = at(80),
          .finished = at(85),
          .delays = {{{at(12), at(15)}, Stall::kCacheIo},
                     {{at(20), at(30)}, Stall::kThrottled},
                     {{at(35), at(45)}, Stall::kThrottled}}};
}

TEST(BlameTest, EveryNanosecondGoesToOneCause) {
  const StallTimes times = blame({at(0), at(100)}, sample(), at(90));

  EXPECT_EQ(times[Stall::kMemory].count(), 10);
  EXPECT_EQ(times[Stall::kCacheIo].count(), 3);
  EXPECT_EQ(times[Stall::kStorage].count(), 27);
  EXPECT_EQ(times[Stall::kThrottled].count(), 20);
  EXPECT_EQ(times[Stall::kDecode].count(), 20);
  EXPECT_EQ(times[Stall::kTransform].count(), 5);
  EXPECT_EQ(times[Stall::kAssemble].count(), 5);
  EXPECT_EQ(times[Stall::kHandover].count(), 10);
  EXPECT_EQ(times.total().count(), 100);
}

TEST(BlameTest, WhatAnotherJobWasToBringIsNotTheStoresFault) {
  SampleTimes times{.reserved = at(0), .fetched = at(60)};
  times.add({{at(10), at(50)}, Stall::kOtherJob});
  times.decoded = times.finished = at(60);

  const StallTimes blamed = blame({at(0), at(60)}, times, at(60));

  EXPECT_EQ(blamed[Stall::kOtherJob].count(), 40);
  EXPECT_EQ(blamed[Stall::kStorage].count(), 20);
  EXPECT_EQ(to_string(Stall::kOtherJob), "other_job");
}

TEST(BlameTest, AWaitThatBeganLateHasNoPartBeforeIt) {
  const StallTimes times = blame({at(40), at(88)}, sample(), at(90));

  EXPECT_EQ(times[Stall::kMemory].count(), 0);
  EXPECT_EQ(times[Stall::kThrottled].count(), 5);
  EXPECT_EQ(times[Stall::kStorage].count(), 15);
  EXPECT_EQ(times.total().count(), 48);
}

TEST(BlameTest, ABatchThatWasReadyCostsOnlyItsHandover) {
  const StallTimes times = blame({at(200), at(203)}, sample(), at(90));

  EXPECT_EQ(times[Stall::kHandover].count(), 3);
  EXPECT_EQ(times.total().count(), 3);
}

TEST(BlameTest, DelaysSideBySideAreCountedOnce) {
  SampleTimes times{.reserved = at(0), .fetched = at(60)};

  times.add({{at(10), at(30)}, Stall::kCacheIo});
  times.add({{at(20), at(40)}, Stall::kThrottled});
  times.add({{at(15), at(35)}, Stall::kCacheIo});

  ASSERT_EQ(times.delays.size(), 2u);
  EXPECT_EQ(times.delays[1].time.begin, at(30));
  EXPECT_EQ(times.delays[1].time.end, at(40));
}

TEST(BlameTest, SumsExactlyWhereverTheWaitLies) {
  for (int begin = 0; begin < 110; ++begin) {
    for (int end = begin; end < 110; ++end) {
      EXPECT_EQ(blame({at(begin), at(end)}, sample(), at(90)).total().count(),
                end - begin);
    }
  }
}

}  // namespace
}  // namespace leat
