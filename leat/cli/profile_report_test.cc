#include "leat/cli/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace leat {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProfileReportTest, TimesHaveThreeDigitsInTheUnitThatFits) {
  EXPECT_EQ(time_text(0), "0 s");
  EXPECT_EQ(time_text(0.0622), "62.2 ms");
  EXPECT_EQ(time_text(0.345), "345 ms");
  EXPECT_EQ(time_text(0.00001234), "12.3 us");
  EXPECT_EQ(time_text(0.9996e-3), "1.00 ms") << "not 1000 us";
  EXPECT_EQ(time_text(0.9994e-3), "999 us");
  EXPECT_EQ(time_text(9.996e-3), "10.0 ms") << "not 10.00";
  EXPECT_EQ(time_text(5e-9), "5.00 ns");
  EXPECT_EQ(time_text(-0.0004), "-400 us");
  EXPECT_EQ(time_text(1.5), "1.50 s");
  EXPECT_EQ(time_text(119), "119 s");
  EXPECT_EQ(time_text(600), "10.0 min");
  EXPECT_EQ(time_text(7200), "2.00 h");
}

/// A step of 200 us, by one part.
Json fast_report() {
  return Json::parse(R"({
    "settings": {"repeats": 3}, "step_seconds": 0.0002, "step_low": 0.00018,
    "step_high": 0.00022,
    "parts": {"compute": {"seconds": 0.0002, "low": 0.00018, "high": 0.00022,
                          "is_tie": false}},
    "naive_wait_fraction": 0.5,
    "proof": {"why_no_warm": "", "connects_to": []}})");
}

std::string printed(const Json& report) {
  std::ostringstream out;
  print_profile(report, out);
  return out.str();
}

TEST(ProfileReportTest, AFastStepIsNotNought) {
  EXPECT_THAT(printed(fast_report()),
              AllOf(HasSubstr("a step takes 200 us (180 us to 220 us)\n"),
                    HasSubstr("   200 us  100.0 %   (180 us to 220 us)\n"),
                    Not(HasSubstr("interval"))));
}

TEST(ProfileReportTest, OneRunOfEachSaysWhatItsIntervalsAreOf) {
  Json report = fast_report();
  report["settings"]["repeats"] = 1;

  EXPECT_THAT(printed(report), HasSubstr("the intervals are of its steps"));
}

TEST(ProfileReportTest, SaysWhereAScriptReadsByItself) {
  Json report = fast_report();
  report["proof"]["connects_to"] = {"10.0.0.1:80", "data.example:443"};

  EXPECT_THAT(printed(report),
              HasSubstr("connects to 10.0.0.1:80, data.example:443 by itself"));

  report["proof"]["why_no_warm"] = "it is so";
  EXPECT_THAT(printed(report), AllOf(HasSubstr("one part: it is so"),
                                     Not(HasSubstr("by itself"))));
}

}  // namespace
}  // namespace leat
