#include "leat/tune/decision.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(DecisionTest, WhatDoesNotChangeStaysAsItIs) {
  EXPECT_EQ(to_string(Decision{.at_seconds = 1,
                               .setting = Setting::kThreads,
                               .before = 3,
                               .after = 3,
                               .reason = "nothing to gain"}),
            "1.0 s  threads stays at 3: nothing to gain");
  EXPECT_EQ(to_string(Decision{.at_seconds = 1,
                               .setting = Setting::kInFlight,
                               .before = 32.2,
                               .after = 31.8,
                               .reason = "a job came"}),
            "1.0 s  max_in_flight stays at 32: a job came");
}

TEST(Decision, ReadsAsALine) {
  Decision decision{.at_seconds = 12.34,
                    .job = {},
                    .setting = Setting::kThreads,
                    .before = 4,
                    .after = 6,
                    .reason = "decode is the bottleneck",
                    .expected_gain = 0.4,
                    .found_gain = {}};
  EXPECT_EQ(
      to_string(decision),
      "12.3 s  threads 4 -> 6: decode is the bottleneck (expected +40 %)");
  decision.found_gain = -0.01;
  decision.job = "resnet";
  EXPECT_EQ(
      to_string(decision),
      "12.3 s  resnet  threads 4 -> 6: decode is the bottleneck (expected "
      "+40 %, found -1 %)");
}

TEST(Decision, WhatIsDecidedForTheFirstTimeWasNothingBefore) {
  Decision first{.at_seconds = 1,
                 .job = {},
                 .setting = Setting::kThreads,
                 .before = 0,
                 .after = 6,
                 .reason = "a job came",
                 .expected_gain = {},
                 .found_gain = {}};
  EXPECT_EQ(to_string(first), "1.0 s  threads 6: a job came");
  first.setting = Setting::kRamBytes;
  EXPECT_EQ(to_string(first), "1.0 s  ram 0 B -> 6 B: a job came");
}

TEST(Decision, APaceIsABoundOrNone) {
  Decision decision{.at_seconds = 5,
                    .setting = Setting::kRequestsPerSecond,
                    .before = 612.4,
                    .after = 300,
                    .reason = "it throttles"};
  EXPECT_EQ(to_string(decision),
            "5.0 s  requests_per_second 612 -> 300: it throttles");
  decision.before = 290;
  decision.after = 0;
  EXPECT_EQ(to_string(decision),
            "5.0 s  requests_per_second 290 -> no bound: it throttles");
}

TEST(Decision, IsAnObjectForPrograms) {
  const Decision decision{.at_seconds = 2,
                          .job = {},
                          .setting = Setting::kInFlight,
                          .before = 1,
                          .after = 8,
                          .reason = "why",
                          .expected_gain = 7,
                          .found_gain = {}};
  EXPECT_EQ(to_json(decision),
            R"({"at_seconds":2.0,"job":"","setting":"max_in_flight",)"
            R"("before":1.0,"after":8.0,"reason":"why","expected_gain":7.0,)"
            R"("found_gain":null})");
}

TEST(Decision, GivesBytesTheirUnit) {
  const Decision decision{.at_seconds = 0,
                          .job = {},
                          .setting = Setting::kBytesPerSecond,
                          .before = 1 << 20,
                          .after = 2 << 20,
                          .reason = "a job left",
                          .expected_gain = {},
                          .found_gain = {}};
  EXPECT_EQ(to_string(decision),
            "0.0 s  bandwidth 1 MiB/s -> 2 MiB/s: a job left");
}

}  // namespace
}  // namespace leat
