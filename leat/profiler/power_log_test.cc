#include "leat/profiler/power_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace leat {
namespace {

using std::chrono_literals::operator""ms;

TimePoint at(std::chrono::milliseconds time) { return TimePoint(time); }

/// 10 W for a second, then 30 W for two.
const std::vector<EnergyReading> kReadings = {
    {at(1000ms), 5}, {at(2000ms), 15}, {at(4000ms), 75}};

TEST(PowerLogTest, PowerIsTheRiseOfTheCounterOverTheTime) {
  EXPECT_DOUBLE_EQ(*mean_watts(kReadings, at(1000ms), at(2000ms)), 10);
  EXPECT_DOUBLE_EQ(*mean_watts(kReadings, at(1250ms), at(1750ms)), 10);
  EXPECT_DOUBLE_EQ(*mean_watts(kReadings, at(2500ms), at(4000ms)), 30);
  EXPECT_DOUBLE_EQ(*mean_watts(kReadings, at(1500ms), at(2500ms)), 20);
}

TEST(PowerLogTest, WhatTheReadingsDoNotCoverIsNotGuessed) {
  EXPECT_FALSE(mean_watts(kReadings, at(999ms), at(2000ms)));
  EXPECT_FALSE(mean_watts(kReadings, at(1000ms), at(4001ms)));
  EXPECT_FALSE(mean_watts(kReadings, at(2000ms), at(2000ms)));
  EXPECT_FALSE(mean_watts(kReadings, at(3000ms), at(2000ms)));
  EXPECT_FALSE(mean_watts({}, at(1000ms), at(2000ms)));
}

}  // namespace
}  // namespace leat
