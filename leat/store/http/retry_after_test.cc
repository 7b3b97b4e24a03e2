#include "leat/store/http/retry_after.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "leat/store/testing/http_server.h"

namespace leat {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using Wait = std::optional<Nanoseconds>;

// Thu, 29 Feb 2024 12:00:00 GMT
constexpr sys_seconds kNoon{seconds(1'709'208'000)};

Wait asked(std::string_view value, int status = 503,
           std::string_view date = "") {
  ReplyHeaders headers;
  headers.add("retry-after", value);
  if (!date.empty()) headers.add("date", date);
  return retry_after({.status = status, .headers = headers}, kNoon);
}

TEST(RetryAfterTest, ReadsSecondsAndDates) {
  EXPECT_EQ(asked("1"), seconds(1));
  EXPECT_EQ(asked("0042"), seconds(42));
  EXPECT_EQ(asked("7", 429), seconds(7));
  EXPECT_EQ(asked("Thu, 29 Feb 2024 12:00:05 GMT"), seconds(5));
  EXPECT_EQ(asked("Thursday, 29-Feb-24 12:00:06 GMT"), seconds(6));
  EXPECT_EQ(asked("Thu Feb 29 12:00:07 2024"), seconds(7));
}

TEST(RetryAfterTest, CountsADateFromTheServersOwnTime) {
  const char* later = "Thu, 29 Feb 2024 13:00:09 GMT";
  EXPECT_EQ(asked(later, 503, "Thu, 29 Feb 2024 13:00:00 GMT"), seconds(9));
  EXPECT_EQ(asked(later, 503, "Thu, 29 Feb 2024 13:00:10 GMT"), std::nullopt);
  EXPECT_EQ(asked(later, 503, "yesterday"), kMostRetryAfter);
}

TEST(RetryAfterTest, BoundsWhatNobodyWouldWaitFor) {
  for (const std::string& long_time :
       {std::string("61"), std::string("86400"), std::string("4294967296"),
        std::string(5000, '9'), std::string("Fri, 31 Dec 9999 23:59:59 GMT")}) {
    EXPECT_EQ(asked(long_time), kMostRetryAfter) << long_time;
  }
}

TEST(RetryAfterTest, PassesOverNonsenseAndThePast) {
  for (const char* none :
       {"0", "-5", "+5", "1.5", "1e3", "5 s", "5, 6", "soon", "GMT", "\x01",
        "2024-02-29T12:00:30Z", "Sun, 06 Nov 1994 08:49:37 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 29 Feb 2024 12:00:00 GMT",
        "Mon, 99 Xyz 2024 99:99:99 GMT"}) {
    EXPECT_EQ(asked(none), std::nullopt) << none;
  }
}

TEST(RetryAfterTest, MeansNothingInOtherReplies) {
  for (const int status : {200, 206, 301, 404, 500, 502}) {
    EXPECT_EQ(asked("5", status), std::nullopt) << status;
  }
  EXPECT_EQ(retry_after({.status = 503}, kNoon), std::nullopt);
}

TEST(RetryAfterTest, TheClientNotesItOverBothTransports) {
  for (const char* method : {"GET", "PUT"}) {
    testing::ScriptedServer server([](const testing::ServerRequest& request) {
      const bool is_first = request.nth == 0;
      return testing::ServerReply{
          .status = 503, .headers = {{"Retry-After", is_first ? "30" : "2"}}};
    });
    HttpClientOptions options;
    options.notes = std::make_shared<EndpointNotes>();
    const auto client = open_http_client(options, nullptr);
    const TimePoint began = SteadyClock().now();

    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(client->send_and_wait(
          {.method = method, .url = server.url("/x")}, {}));
    }

    const Nanoseconds wait = options.notes->not_before() - began;
    EXPECT_GE(wait, seconds(30)) << "the longer one counts";
    EXPECT_LE(wait, seconds(40));
  }
}

}  // namespace
}  // namespace leat
