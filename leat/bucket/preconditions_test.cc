#include "leat/bucket/preconditions.h"

#include <gtest/gtest.h>

#include "leat/bucket/iso_date.h"
#include "leat/store/cloud/http_date.h"

namespace leat {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
const ObjectState kState{.size_bytes = 1,
                         .modified_ns = 1000 * kSecond,
                         .etag = "abc",
                         .headers = ""};

TEST(PreconditionsTest, ComparesEtags) {
  EXPECT_EQ(check_read({}, kState), Verdict::kProceed);
  EXPECT_EQ(check_read({.if_match = "\"abc\""}, kState), Verdict::kProceed);
  EXPECT_EQ(check_read({.if_match = "abc"}, kState), Verdict::kProceed);
  EXPECT_EQ(check_read({.if_match = "\"x\", \"abc\""}, kState),
            Verdict::kProceed);
  EXPECT_EQ(check_read({.if_match = "*"}, kState), Verdict::kProceed);
  EXPECT_EQ(check_read({.if_match = "\"ab\""}, kState), Verdict::kFailed);
  EXPECT_EQ(check_read({.if_none_match = "W/\"abc\""}, kState),
            Verdict::kNotModified);
  EXPECT_EQ(check_read({.if_none_match = "\"x\""}, kState), Verdict::kProceed);
}

TEST(PreconditionsTest, ComparesDatesToTheSecond) {
  const std::string before = http_date(999);
  const std::string same = http_date(1000);

  EXPECT_EQ(check_read({.if_modified_since = before}, kState),
            Verdict::kProceed);
  EXPECT_EQ(check_read({.if_modified_since = same}, kState),
            Verdict::kNotModified);
  EXPECT_EQ(check_read({.if_unmodified_since = before}, kState),
            Verdict::kFailed);
  EXPECT_EQ(check_read({.if_unmodified_since = same}, kState),
            Verdict::kProceed);
  EXPECT_EQ(check_read({.if_unmodified_since = "yesterday"}, kState),
            Verdict::kProceed);
}

TEST(PreconditionsTest, EtagsGoBeforeDates) {
  EXPECT_EQ(check_read({.if_none_match = "\"x\"",
                        .if_modified_since = http_date(1000)},
                       kState),
            Verdict::kProceed);
  EXPECT_EQ(
      check_read({.if_match = "\"abc\"", .if_unmodified_since = http_date(1)},
                 kState),
      Verdict::kProceed);
}

TEST(PreconditionsTest, GuardsWrites) {
  EXPECT_EQ(check_write({.if_none_match = "*"}, nullptr), Verdict::kProceed);
  EXPECT_EQ(check_write({.if_none_match = "*"}, &kState), Verdict::kFailed);
  EXPECT_EQ(check_write({.if_match = "\"abc\""}, &kState), Verdict::kProceed);
  EXPECT_EQ(check_write({.if_match = "\"x\""}, &kState), Verdict::kFailed);
  EXPECT_EQ(check_write({.if_match = "*"}, nullptr), Verdict::kFailed);
}

TEST(HttpDateTest, ReadsWhatItWrites) {
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1369353600), "Fri, 24 May 2013 00:00:00 GMT");
  for (const std::int64_t seconds : {0LL, 1369353600LL, 1709164800LL}) {
    EXPECT_EQ(parse_http_date(http_date(seconds)),
              WallTime(std::chrono::seconds(seconds)));
  }
  for (const char* text :
       {"", "Thu, 01 Jan 1970 00:00:00 CET", "Thu, 32 Jan 1970 00:00:00 GMT"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
  EXPECT_EQ(iso_date(1'500'000'000), "1970-01-01T00:00:01.500Z");
}

}  // namespace
}  // namespace leat
