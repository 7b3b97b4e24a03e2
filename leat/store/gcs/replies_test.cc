#include "leat/store/gcs/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string item(std::string_view name, std::string_view size = "1",
                 std::string_view generation = "7") {
  return R"({"name":")" + std::string(name) + R"(","size":")" +
         std::string(size) + R"(","generation":")" + std::string(generation) +
         R"("})";
}

std::string items(const std::string& inside) {
  return R"({"items":[)" + inside + "]}";
}

TEST(GcsListTest, LeavesOutTheKeyThatItStartsAfter) {
  const auto page = parse_gcs_list(
      R"({"items":[)" + item("p/a") + "," + item("p/b", "22", "8") +
          R"(],"prefixes":["p/c/"],"nextPageToken":"t"})",
      "p/", "p/a");

  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->objects.size(), 1u);
  EXPECT_EQ(page->objects[0].key, "p/b");
  EXPECT_EQ(page->objects[0].size_bytes, 22u);
  EXPECT_EQ(page->objects[0].etag, "8");
  EXPECT_EQ(page->common_prefixes.at(0), "p/c/");
  EXPECT_EQ(page->resume, "t");
}

TEST(GcsListTest, RefusesWhatIsNoListing) {
  struct Row {
    std::string body, says;
  };
  const Row rows[] = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {"<html>", "no JSON object"},
      {items(item("p/a", "")), "size"},
      {items(item("p/a", "-1")), "size"},
      {items(item("p/a", "18446744073709551616")), "size"},
      {items(item("p/a", "1", "")), "generation"},
      {items(item("p/a", "1", "x\\r\\ny")), "generation"},
      {items(item("q/a")), "prefix"},
      {items("{}"), "size"},
      {items("3"), "size"},
      {items(item("p/b") + "," + item("p/a")), "byte order"},
      {items(item("p/a") + "," + item("p/a")), "byte order"},
      {R"({"prefixes":["/etc/"]})", "prefix"},
      {R"({"prefixes":[1]})", "no text"},
      {std::string(300'000, '['), "too large"},
  };
  for (const Row& row : rows) {
    const auto page = parse_gcs_list(row.body, "p/", "");

    ASSERT_FALSE(page) << row.body.substr(0, 80);
    EXPECT_EQ(page.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(page.error().message(), HasSubstr(row.says));
  }
}

TEST(GcsListTest, SurvivesAnyChange) {
  const std::string good = items(item("a") + "," + item("b"));
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    (void)parse_gcs_list(bad, "", "");
    (void)parse_gcs_object(bad, "a");
    (void)error_from_gcs({400, {}, bad}, {});
  }
}

TEST(GcsErrorTest, MapsReasonsAndStatusesAndSaysWhatToDo) {
  struct Row {
    int status;
    std::string_view reason;
    GcsAttempt attempt;
    ErrorCode code;
    std::string_view says;
  };
  const Row rows[] = {
      {404, "notFound", {}, ErrorCode::kNotFound, "no object or bucket"},
      {403, "forbidden", {}, ErrorCode::kPermissionDenied, "objectViewer"},
      {401,
       "required",
       {.is_anonymous = true},
       ErrorCode::kPermissionDenied,
       "not public"},
      {401, "authError", {}, ErrorCode::kPermissionDenied, "token"},
      {401, "authError", {.has_newer = true}, ErrorCode::kUnavailable, "token"},
      {403, "rateLimitExceeded", {}, ErrorCode::kThrottled, "fewer requests"},
      {400,
       "userProjectMissing",
       {},
       ErrorCode::kPermissionDenied,
       "requester_pays"},
      {412, "conditionNotMet", {}, ErrorCode::kCorrupt, "index again"},
      {416,
       "requestedRangeNotSatisfiable",
       {},
       ErrorCode::kInvalidArgument,
       "past the end"},
      {429, "rateLimitExceeded", {}, ErrorCode::kThrottled, "fewer requests"},
      {503, "backendError", {}, ErrorCode::kThrottled, "fewer requests"},
      {500, "backendError", {}, ErrorCode::kUnavailable, "may recover"},
      {408, "", {}, ErrorCode::kUnavailable, "may recover"},
      {400, "invalid", {}, ErrorCode::kInvalidArgument, "does not accept"},
  };
  for (const Row& row : rows) {
    GcsAttempt attempt = row.attempt;
    attempt.doing = "reading gs://ds/k";
    const Error error = error_from_gcs(
        {row.status,
         {},
         R"({"error":{"message":"Because.","errors":[{"reason":")" +
             std::string(row.reason) + R"("}]}})"},
        attempt);
    EXPECT_EQ(to_string(error.code()), to_string(row.code)) << row.reason;
    EXPECT_THAT(error.message(), HasSubstr(row.says));
    EXPECT_THAT(error.message(), HasSubstr("reading gs://ds/k: HTTP "));
    EXPECT_THAT(error.message(), HasSubstr("Because."));
  }
}

TEST(GcsErrorTest, ShowsNothingOfWhatWasSent) {
  for (const char* body :
       {"no such token: PLANTEDTOKEN",
        R"({"error":{"message":"PLANTEDTOKEN is old"}})",
        R"({"error":{"errors":[{"reason":"PLANTEDTOKEN"}]}})"}) {
    HttpReply reply{401, {}, body};
    reply.sent_values = {"Bearer PLANTEDTOKEN", "PLANTEDTOKEN"};
    EXPECT_THAT(error_from_gcs(reply, {}).message(),
                AllOf(HasSubstr("(hidden)"), Not(HasSubstr("PLANTED"))));
  }
}

TEST(GcsErrorTest, ShowsPlainTextButNoPageAndNoControlCharacters) {
  EXPECT_THAT(
      error_from_gcs({404, {}, "No such object:\x1b[31m ds/k"}, {}).message(),
      HasSubstr("No such object: [31m ds/k"));
  EXPECT_THAT(error_from_gcs({404, {}, "<html>x</html>"}, {}).message(),
              Not(HasSubstr("html")));
}

}  // namespace
}  // namespace leat
