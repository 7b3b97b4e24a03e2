#include "leat/store/layers/polite_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A server that closes each connection, asked for as much as the window lets.
class PoliteWindowTest : public ::testing::Test {
 protected:
  /// A reply to each of those in flight, which it serves `at_once` at a time.
  void answer_all(std::size_t at_once) {
    const std::size_t in_flight = window_.most();
    for (std::size_t i = 0; i < in_flight; ++i) {
      const auto turns = static_cast<int>(i / at_once + 1);
      notes_.note_reply(false, milliseconds(10) * turns);
      now_ += milliseconds(1);
      window_.read_ended(now_);
    }
  }

  EndpointNotes notes_;
  PoliteWindow window_{notes_};
  TimePoint now_ = TimePoint() + seconds(1000);
};

TEST_F(PoliteWindowTest, IsSmallForAServerOfOneThread) {
  for (int i = 0; i < 500; ++i) {
    answer_all(1);
    ASSERT_LE(window_.most(), 10u);
  }
  EXPECT_GE(window_.most(), 2u);
}

TEST_F(PoliteWindowTest, GrowsForAServerOfManyThreads) {
  for (int i = 0; i < 500; ++i) answer_all(64);
  EXPECT_GE(window_.most(), 32u);
}

TEST_F(PoliteWindowTest, IsWithoutBoundsWhereConnectionsAreKept) {
  EXPECT_EQ(window_.most(), 4u);
  notes_.note_reply(true, milliseconds(1));
  EXPECT_EQ(window_.most(), SIZE_MAX);
}

TEST_F(PoliteWindowTest, IsBoundedWhileAServerOfFewThreadsIsCrowded) {
  notes_.note_reply(true, milliseconds(1));
  notes_.note_crowded(now_);
  window_.read_ended(now_);
  EXPECT_LE(window_.most(), 4u);
  now_ += KnownEndpoint::kCrowded;
  window_.read_ended(now_);
  EXPECT_EQ(window_.most(), SIZE_MAX);
}

TEST_F(PoliteWindowTest, HalvesForADroppedPacketAndStaysBelowForAWhile) {
  for (int i = 0; i < 100; ++i) answer_all(64);
  const std::size_t before = window_.most();
  for (int i = 0; i < 5; ++i) {  // All of them belong to one loss.
    notes_.note_late();
    window_.read_ended(now_);
  }
  EXPECT_EQ(window_.most(), before / 2);
  for (int i = 0; i < 100; ++i) {
    answer_all(64);
    ASSERT_LT(window_.most(), before);
  }
  now_ += seconds(31);
  answer_all(64);
  now_ += seconds(31);
  answer_all(64);
  EXPECT_GE(window_.most(), before - 1);
}

}  // namespace
}  // namespace leat
