#include "leat/index/refresh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using ::testing::HasSubstr;

constexpr sys_seconds kNow{seconds(1'000'000)};

bool accepts(std::string_view text, seconds age) {
  return Refresh::parse(text)->accepts(kNow - age, kNow);
}

TEST(RefreshTest, TakesCataloguesUpToTheAgeGiven) {
  EXPECT_TRUE(accepts("never", seconds(999'999)));
  EXPECT_FALSE(accepts("always", seconds(0)));
  EXPECT_TRUE(accepts("if-older-than:1d", seconds(86'400)));
  EXPECT_FALSE(accepts("if-older-than:1d", seconds(86'401)));
  EXPECT_TRUE(accepts("if-older-than:2h", seconds(7'200)));
  EXPECT_FALSE(accepts("if-older-than:2h", seconds(7'201)));
  EXPECT_FALSE(accepts("if-older-than:3m", seconds(181)));
  EXPECT_FALSE(accepts("if-older-than:4s", seconds(5)));
}

TEST(RefreshTest, AClockThatIsALittleAheadMakesNothingOld) {
  EXPECT_TRUE(accepts("if-older-than:1s", seconds(-60)));
}

TEST(RefreshTest, ACatalogueOfTheFutureIsOfUnknownAge) {
  EXPECT_FALSE(accepts("if-older-than:1d", seconds(-61)));
  EXPECT_FALSE(accepts("if-older-than:1d", seconds(-86'400)));
  EXPECT_TRUE(accepts("never", seconds(-86'400)));
}

TEST(RefreshTest, WhoseAgeIsNotKnownIsTooOld) {
  EXPECT_FALSE(Refresh::parse("if-older-than:90d")->accepts({}, kNow));
  EXPECT_TRUE(Refresh::never().accepts({}, kNow));
}

TEST(RefreshTest, SaysWhatItMayBe) {
  for (const char* text : {"", "sometimes", "if-older-than:", "if-older-than:1",
                           "if-older-than:-1d", "if-older-than:0s",
                           "if-older-than:1 fortnight", "if-older-than: "}) {
    const auto refresh = Refresh::parse(text);
    ASSERT_FALSE(refresh) << text;
    EXPECT_EQ(refresh.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(refresh.error().message(), HasSubstr("if-older-than:AGE"));
  }
}

}  // namespace
}  // namespace leat
