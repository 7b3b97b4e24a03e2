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
          .backoffs = {{at(20), at(30)}, {at(35), at(45)}}};
}

TEST(BlameTest, EveryNanosecondGoesToOneCause) {
  const StallTimes times = blame({at(0), at(100)}, sample(), at(90));

  EXPECT_EQ(times[Stall::kMemory].count(), 10);
  EXPECT_EQ(times[Stall::kStorage].count(), 30);
  EXPECT_EQ(times[Stall::kThrottled].count(), 20);
  EXPECT_EQ(times[Stall::kDecode].count(), 20);
  EXPECT_EQ(times[Stall::kTransform].count(), 5);
  EXPECT_EQ(times[Stall::kAssemble].count(), 5);
  EXPECT_EQ(times[Stall::kHandover].count(), 10);
  EXPECT_EQ(times.total().count(), 100);
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
