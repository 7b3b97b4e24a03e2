#include "leat/cli/progress_line.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

namespace leat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ProgressLineTest, SaysHowMuchHowFastAndHowLongStill) {
  const Progress half{
      .what = "epoch 1", .done = 500, .all = 1000, .unit = "samples"};

  EXPECT_EQ(progress_text(half, seconds(10)),
            "epoch 1: 500 of 1000 samples, 50/s, 50 %, 10 s left");
  EXPECT_EQ(progress_text(half, seconds(600)),
            "epoch 1: 500 of 1000 samples, 0.833/s, 50 %, 10 min left");
  EXPECT_EQ(progress_text(half, seconds(7200)),
            "epoch 1: 500 of 1000 samples, 0.0694/s, 50 %, 2.0 h left");
}

TEST(ProgressLineTest, TellsNothingThatIsNotKnown) {
  EXPECT_EQ(progress_text({.what = "a", .done = 3, .all = 9, .unit = "b"},
                          milliseconds(20)),
            "a: 3 of 9 b, 33 %");
  EXPECT_EQ(progress_text({.what = "a", .all = 9, .unit = "b"}, seconds(20)),
            "a: 0 of 9 b, 0 %");
  EXPECT_EQ(progress_text({.what = "a", .done = 40, .unit = "b"}, seconds(20)),
            "a: 40 b, 2/s");
  EXPECT_EQ(progress_text({.what = "a", .done = 1, .all = 4}, seconds(20)),
            "a: 25 %, 60 s left");
}

TEST(ProgressLineTest, IsWrittenAtMostFiveTimesASecondAndCleared) {
  std::ostringstream err;
  FakeClock clock;
  {
    ProgressLine line(err, ProgressScreen::kTerminal, clock);
    line.show({.what = "a", .done = 1, .all = 4});
    clock.advance(milliseconds(100));
    line.show({.what = "a", .done = 2, .all = 4});
    clock.advance(milliseconds(100));
    line.show({.what = "a", .done = 3, .all = 4});
    clock.advance(seconds(1));
    line.show("writing");
  }
  EXPECT_EQ(err.str(), "\r\x1b[Ka: 25 %\r\x1b[Ka: 75 %\r\x1b[Kwriting\r\x1b[K");
}

TEST(ProgressLineTest, CountsTimeFromTheBeginningOfWhatItTells) {
  std::ostringstream err;
  FakeClock clock;
  ProgressLine line(err, ProgressScreen::kTerminal, clock);
  line.show({.what = "a", .done = 1, .all = 4});
  clock.advance(seconds(100));
  line.show({.what = "b", .done = 0, .all = 4});
  clock.advance(seconds(3));
  line.show({.what = "b", .done = 1, .all = 4});

  EXPECT_TRUE(err.str().ends_with("b: 25 %, 9 s left")) << err.str();
}

TEST(ProgressLineTest, WhatBeginsIsShownAtOnce) {
  std::ostringstream err;
  FakeClock clock;
  ProgressLine line(err, ProgressScreen::kTerminal, clock);
  line.show({.what = "a", .done = 1, .all = 4});
  line.show({.what = "b", .done = 0, .all = 4});

  EXPECT_EQ(err.str(), "\r\x1b[Ka: 25 %\r\x1b[Kb: 0 %");
}

TEST(ProgressLineTest, IsALineOfItsOwnInALog) {
  std::ostringstream err;
  FakeClock clock;
  ProgressLine line(err, ProgressScreen::kLog, clock);
  line.show({.what = "a", .done = 1, .all = 4});
  EXPECT_EQ(err.str(), "");
  clock.advance(seconds(10));
  line.show({.what = "a", .done = 2, .all = 4});
  line.write_to_log();

  EXPECT_EQ(err.str(), "leat: a: 50 %, 10 s left\n");
}

TEST(ProgressLineTest, ALogHearsHowLongWorkTakesThatNobodyCounts) {
  std::ostringstream err;
  FakeClock clock;
  ProgressLine line(err, ProgressScreen::kLog, clock);
  clock.advance(seconds(4));
  line.show("writing");
  clock.advance(seconds(6));
  line.write_to_log();
  clock.advance(seconds(10));
  line.write_to_log();

  EXPECT_EQ(err.str(),
            "leat: writing, for 6 s now\nleat: writing, for 16 s now\n");
}

TEST(ProgressLineTest, ALogHearsNothingOfWorkThatIsOver) {
  std::ostringstream err;
  FakeClock clock;
  ProgressLine line(err, ProgressScreen::kLog, clock);
  line.write_to_log();
  line.show({.what = "a", .done = 1, .all = 4});
  line.clear();
  clock.advance(seconds(10));
  line.write_to_log();

  EXPECT_EQ(err.str(), "");
}

TEST(ProgressLineTest, IsNotWrittenWhereNobodyLooks) {
  std::ostringstream err;
  FakeClock clock;
  {
    ProgressLine line(err, ProgressScreen::kNone, clock);
    line.show({.what = "a", .done = 1, .all = 4});
    line.show("writing");
    line.write_to_log();
  }
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace leat
