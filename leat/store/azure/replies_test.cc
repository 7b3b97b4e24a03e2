#include "leat/store/azure/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string blob(std::string_view name, std::string_view size = "1",
                 std::string_view more = "") {
  return "<Blob><Name>" + std::string(name) +
         "</Name><Properties><Content-Length>" + std::string(size) +
         "</Content-Length><Etag>0x1</Etag>" + std::string(more) +
         "</Properties></Blob>";
}

std::string listing(std::string_view inside, std::string_view marker = "") {
  return "<EnumerationResults><Blobs>" + std::string(inside) +
         "</Blobs><NextMarker>" + std::string(marker) +
         "</NextMarker></EnumerationResults>";
}

TEST(AzureListTest, ReadsBlobsAndFoldersAndNoDirectories) {
  const auto page = parse_azure_list(
      listing("<BlobPrefix><Name>p/x/</Name></BlobPrefix>" + blob("p/b&amp;") +
                  blob("p/dir", "0", "<ResourceType>directory</ResourceType>") +
                  "<Blob><Name Encoded=\"true\">p/a%EF%BF%BE</Name><Properties>"
                  "<Content-Length>3</Content-Length><Etag>\"0x2\"</Etag>"
                  "</Properties></Blob>",
              "next"),
      "p/");

  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0].key, "p/a\xef\xbf\xbe");
  EXPECT_EQ(page->objects[0].etag, "\"0x2\"");
  EXPECT_EQ(page->objects[1].key, "p/b&");
  EXPECT_EQ(page->objects[1].etag, "\"0x1\"");
  EXPECT_EQ(page->common_prefixes.at(0), "p/x/");
  EXPECT_EQ(page->resume, "next");
}

TEST(AzureListTest, RefusesWhatIsNoListing) {
  struct Row {
    std::string body, says;
  };
  std::string many;
  for (int i = 0; i < 300'000; ++i) many += "<a/><a/>";
  const Row rows[] = {
      {"", "not XML"},
      {"<html><body>Welcome</body></html>", "no EnumerationResults"},
      {"<EnumerationResults>", "not XML"},
      {listing(blob("p/a", "")), "size"},
      {listing(blob("p/a", "-1")), "size"},
      {listing(blob("p/a", "18446744073709551616")), "size"},
      {listing(blob("q/a")), "prefix"},
      {listing("<BlobPrefix><Name>/etc/</Name></BlobPrefix>"), "prefix"},
      {listing(blob("p/a") + blob("p/a")), "byte order"},
      {listing(many), "too large"},
  };
  for (const Row& row : rows) {
    const auto page = parse_azure_list(row.body, "p/");

    ASSERT_FALSE(page) << row.says;
    EXPECT_EQ(page.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(page.error().message(), HasSubstr(row.says));
  }
}

TEST(AzureListTest, SurvivesAnyChange) {
  const std::string good = listing(blob("a") + blob("b"), "m");
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    (void)parse_azure_list(bad, "");
    (void)error_from_azure({400, {}, bad}, {});
  }
}

TEST(AzureErrorTest, MapsCodesAndStatusesAndSaysWhatToDo) {
  struct Row {
    int status;
    std::string_view said;
    AzureAttempt attempt;
    ErrorCode code;
    std::string_view says;
  };
  const Row rows[] = {
      {404, "BlobNotFound", {}, ErrorCode::kNotFound, "no blob"},
      {404, "ContainerNotFound", {}, ErrorCode::kNotFound, "no container"},
      {404, "", {}, ErrorCode::kNotFound, "no blob"},
      {404,
       "ResourceNotFound",
       {.is_anonymous = true},
       ErrorCode::kNotFound,
       "not public"},
      {409,
       "PublicAccessNotPermitted",
       {.is_anonymous = true},
       ErrorCode::kPermissionDenied,
       "not public"},
      {409, "BlobArchived", {}, ErrorCode::kInvalidArgument, "rehydrate"},
      {403,
       "AuthorizationPermissionMismatch",
       {},
       ErrorCode::kPermissionDenied,
       "Data Reader"},
      {403, "AuthenticationFailed", {}, ErrorCode::kPermissionDenied, "renew"},
      {401,
       "InvalidAuthenticationInfo",
       {.may_succeed_now = true},
       ErrorCode::kUnavailable,
       "renew"},
      {412, "ConditionNotMet", {}, ErrorCode::kCorrupt, "index again"},
      {416, "InvalidRange", {}, ErrorCode::kInvalidArgument, "past the end"},
      {503, "ServerBusy", {}, ErrorCode::kThrottled, "fewer requests"},
      {429, "", {}, ErrorCode::kThrottled, "fewer requests"},
      {500, "OperationTimedOut", {}, ErrorCode::kUnavailable, "may recover"},
      {500, "InternalError", {}, ErrorCode::kUnavailable, "may recover"},
      {400,
       "InvalidHeaderValue",
       {},
       ErrorCode::kInvalidArgument,
       "does not accept"},
  };
  for (const Row& row : rows) {
    AzureAttempt attempt = row.attempt;
    attempt.doing = "reading az://ds/k";
    const Error error =
        error_from_azure({row.status,
                          {},
                          "\xef\xbb\xbf<?xml version=\"1.0\"?><Error><Code>" +
                              std::string(row.said) +
                              "</Code><Message>PLANTED</Message></Error>"},
                         attempt);
    EXPECT_EQ(to_string(error.code()), to_string(row.code)) << row.said;
    EXPECT_THAT(error.message(), HasSubstr(row.says));
    EXPECT_THAT(error.message(), HasSubstr("reading az://ds/k: HTTP "));
    EXPECT_THAT(error.message(), Not(HasSubstr("PLANTED")));
  }
}

TEST(AzureErrorTest, ShowsNothingOfWhatWasSent) {
  for (HttpReply reply :
       {HttpReply{403, {{"x-ms-error-code", "SharedKey a:PLANTEDSIG"}}, ""},
        HttpReply{403, {}, "<Error><Code>PLANTEDSIG</Code></Error>"}}) {
    reply.sent_values = {"SharedKey a:PLANTEDSIG", "PLANTEDSIG"};
    EXPECT_THAT(error_from_azure(reply, {}).message(),
                AllOf(HasSubstr("(hidden)"), Not(HasSubstr("PLANTED"))));
  }
}

}  // namespace
}  // namespace leat
