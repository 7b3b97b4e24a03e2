#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/json_text.h"
#include "leat/store/cloud/testing/link_world.h"
#include "leat/store/cloud/token.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DigestTest, WritesBase64AsTheRfcDoesAndReadsNothingElse) {
  const std::pair<const char*, const char*> rows[] = {{"", ""},
                                                      {"f", "Zg=="},
                                                      {"fo", "Zm8="},
                                                      {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="},
                                                      {"fooba", "Zm9vYmE="},
                                                      {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : rows) {
    EXPECT_EQ(base64(plain), coded);
    EXPECT_EQ(base64_decode(coded), plain);
  }
  EXPECT_EQ(base64("\xfb\xff"), "+/8=");
  EXPECT_EQ(base64_url("\xfb\xff"), "-_8");
  for (const char* bad : {"Zg", "Zg=", "Zh==", "Z", "Zm9v=", "Zm 9v", "-_8="}) {
    EXPECT_FALSE(base64_decode(bad)) << bad;
  }
}

TEST(JsonTextTest, FindsTextsAndNothingElse) {
  const auto json = parse_json_text(R"({"a":"b","c":{"d":1},"e":null})");

  EXPECT_EQ(json_text(json, "a"), "b");
  for (const char* none : {"c", "e", "x", ""}) {
    EXPECT_EQ(json_text(json, none), "") << none;
  }
  ASSERT_NE(json_member(json, "c"), nullptr);
  EXPECT_EQ(json_member(*json_member(json, "a"), "b"), nullptr);
  for (const std::string& bad :
       {std::string(), std::string("{\"a\":"), std::string(300'000, '[')}) {
    EXPECT_EQ(json_text(parse_json_text(bad), "a"), "");
  }
}

TEST(TokenTest, ReadsTokensAndShowsNoneInErrors) {
  testing::LinkWorld world;
  const CredentialTools tools = world.tools();
  const auto read = [&](int status, std::string body) {
    const std::string_view secrets[] = {"PLANTED"};
    return token_from_reply({status, {}, std::move(body)}, "the issuer",
                            secrets, tools);
  };

  const auto as_text = read(200, R"({"access_token":"T","expires_in":"60"})");
  ASSERT_TRUE(as_text);
  EXPECT_EQ(as_text->keys.bearer_token, "T");
  EXPECT_EQ(world.left(*as_text), std::chrono::seconds(60));
  for (const char* bad :
       {"", "PLANTED", "[]", R"({"access_token":"PLANTED"})",
        R"({"access_token":"PLANTED","expires_in":0})",
        R"({"access_token":"PLANTED\r\nX: y","expires_in":60})",
        R"({"access_token":{"a":"PLANTED"},"expires_in":60})"}) {
    const auto refused = read(200, bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(refused.error().message(), Not(HasSubstr("PLANTED")));
  }
  EXPECT_EQ(read(503, "").error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(read(429, "").error().code(), ErrorCode::kThrottled);
  EXPECT_THAT(read(400, R"({"error":"e","error_description":"a PLANTED b"})")
                  .error()
                  .message(),
              HasSubstr("(e: a (hidden) b)"));
}

TEST(TokenTest, SecretsGoOverHttpsOnly) {
  EXPECT_TRUE(check_token_url("https://issuer/token", "it"));
  EXPECT_TRUE(check_token_url("http://127.0.0.1:80/token", "it"));
  EXPECT_TRUE(check_token_url("http://localhost/token", "it"));
  for (const char* url : {"http://issuer/token", "ftp://x", "", "issuer",
                          "http://127.0.0.1.evil.org/"}) {
    EXPECT_FALSE(check_token_url(url, "it")) << url;
  }
}

}  // namespace
}  // namespace leat
