#include "leat/store/cloud/expiration.h"

#include <gtest/gtest.h>

#include "leat/store/cloud/testing/link_world.h"

namespace leat {
namespace {

using namespace std::chrono_literals;

TEST(Iso8601Test, ReadsTimesAndRefusesOthers) {
  const auto noon =
      std::chrono::sys_days(std::chrono::year(2024) / 2 / 29) + 12h;
  for (const char* text :
       {"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.123Z",
        "2024-02-29T13:30:00+01:30", "2024-02-29T05:00:00-0700"}) {
    EXPECT_EQ(parse_iso8601(text), noon) << text;
  }
  for (const char* text :
       {"", "2024-02-29", "2024-02-29T12:00:00", "2024-02-30T12:00:00Z",
        "2024-02-29T25:00:00Z", "2024-02-29T12:00:00.Z", "2024-02-29T12:00:0xZ",
        "2024/02/29T12:00:00Z", "2024-02-29T12:00:00+0100x", "never"}) {
    EXPECT_FALSE(parse_iso8601(text)) << text;
  }
}

TEST(ExpirationTest, IsSeenOnOurClockEvenIfTheTimeOfDayIsWrong) {
  testing::LinkWorld world;
  const CredentialTools tools = world.tools();
  const auto left = [&](const char* expiration, std::string_view date) {
    return expiry_on_our_clock(*parse_iso8601(expiration), date, tools) -
           world.clock->now();
  };

  EXPECT_EQ(left("2024-02-29T13:00:00Z", ""), 1h);
  EXPECT_EQ(left("2024-02-29T13:00:00Z", "Thu, 29 Feb 2024 12:00:30 GMT"), 1h)
      << "within noise";
  EXPECT_EQ(left("2024-02-29T13:00:00Z", "Thu, 29 Feb 2024 12:50:00 GMT"),
            10min)
      << "our clock is 50 minutes behind";
  EXPECT_EQ(left("2024-02-29T13:00:00Z", "Thu, 29 Feb 2024 11:00:00 GMT"), 2h);
  EXPECT_EQ(left("2024-02-29T13:00:00Z", "Fri, 31 Dec 9999 23:59:60 GMT"), 1h)
      << "nobody's clock";
  EXPECT_LT(left("2024-02-29T11:00:00Z", ""), 0h);
  EXPECT_GT(left("9999-12-31T23:59:59Z", ""), 24h * 365 * 99);
  EXPECT_LT(left("0001-01-01T00:00:00Z", ""), -24h * 365 * 99);
}

TEST(RefreshTimesTest, AreFiveMinutesOrAShareOfAShortLife) {
  struct Row {
    Nanoseconds lifetime, renew_before, unusable_before;
  };
  for (const Row& row : {Row{1h, 5min, 10s}, Row{12h, 5min, 10s},
                         Row{20s, 5s, 2500ms}, Row{2s, 500ms, 250ms}}) {
    EXPECT_EQ(refresh_times(row.lifetime).renew_before, row.renew_before);
    EXPECT_EQ(refresh_times(row.lifetime).unusable_before, row.unusable_before);
  }
}

}  // namespace
}  // namespace leat
