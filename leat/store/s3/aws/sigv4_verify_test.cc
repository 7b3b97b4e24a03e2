#include "leat/store/s3/aws/sigv4_verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using namespace std::chrono_literals;

const Credentials kExample{"AKIAIOSFODNN7EXAMPLE",
                           "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const AmzDate kDate = *AmzDate::parse("20130524T000000Z");

FindCredentials only(const Credentials& credentials) {
  return [credentials](std::string_view id) -> std::optional<Credentials> {
    if (id != credentials.access_key_id) return std::nullopt;
    return credentials;
  };
}

/// A request that a client of ours would send, owned.
struct Sent {
  std::string method = "GET";
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers = {};

  CheckedSignature check(WallTime now, const VerifyOptions& options = {},
                         const Credentials& known = kExample) const {
    std::vector<ReceivedRequest::Header> lent(headers.begin(), headers.end());
    return verify_signature({method, target, lent}, only(known), now, options);
  }
};

Sent signed_request(std::string_view key, const QueryPairs& query,
                    const Credentials& credentials = kExample) {
  const std::string path = "/" + uri_encode(key, Slash::kKeep);
  const std::string text = canonical_query(query);
  std::vector<SigningRequest::Header> headers = {
      {"host", "localhost:9000"},
      {"x-amz-content-sha256", kUnsignedPayload},
      {"x-amz-date", kDate.text()}};
  if (!credentials.session_token.empty()) {
    headers.push_back({"x-amz-security-token", credentials.session_token});
  }
  Sent sent{.target = path + (text.empty() ? "" : "?" + text)};
  for (const auto& header : headers) {
    sent.headers.emplace_back(header.name, header.value);
  }
  sent.headers.emplace_back(
      "Authorization",
      Signer(credentials, "us-east-1")
          .authorization({"GET", path, text, headers, kUnsignedPayload},
                         kDate));
  return sent;
}

// AWS's published example of a presigned GET, good for a day.
Sent presigned_example() {
  Sent sent{.target =
                "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="
                "AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_"
                "request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
                "X-Amz-SignedHeaders=host&X-Amz-Signature="
                "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604"
                "d404"};
  sent.headers.emplace_back("Host", "examplebucket.s3.amazonaws.com");
  return sent;
}

TEST(VerifySignatureTest, AcceptsAwsExampleOfAPresignedUrlForADay) {
  EXPECT_EQ(presigned_example().check(kDate.time() + 86400s).verdict,
            SignatureVerdict::kValid);
  EXPECT_EQ(presigned_example().check(kDate.time() + 86401s).verdict,
            SignatureVerdict::kExpired);
}

TEST(VerifySignatureTest, AcceptsEveryKeyThatOurSignerSigns) {
  for (const char* key :
       {"plain", "a b", "a+b", "dt=2024/x", "t:1@(2)", "a//b", "h\xc3\xa9",
        "100%", "%2F", "it's,*!~", "q?x&y=z", "#\"<>\\^`{|}"}) {
    const Sent sent =
        signed_request(std::string("bucket/") + key,
                       {{"prefix", key}, {"list-type", "2"}, {"uploads", ""}});

    EXPECT_EQ(sent.check(kDate.time()).verdict, SignatureVerdict::kValid)
        << key;
  }
}

TEST(VerifySignatureTest, AcceptsQueriesInAnyOrderAndEscapingOfTheClient) {
  Sent sent = signed_request("b", {{"list-type", "2"}, {"prefix", "a/b"}});
  sent.target = "/b?prefix=a/b&list-type=2";

  EXPECT_EQ(sent.check(kDate.time()).verdict, SignatureVerdict::kValid);
}

TEST(VerifySignatureTest, SaysWhoSignedForWhatAndWhichPayload) {
  const CheckedSignature checked = signed_request("k", {}).check(kDate.time());

  EXPECT_EQ(checked.access_key_id, "AKIAIOSFODNN7EXAMPLE");
  EXPECT_EQ(checked.region, "us-east-1");
  EXPECT_EQ(checked.payload_hash, kUnsignedPayload);
}

TEST(VerifySignatureTest, RefusesAnotherMethodPathQueryHeaderOrSecret) {
  const Sent good = signed_request("b/k", {{"a", "1"}});
  Sent method = good, path = good, query = good, host = good;
  method.method = "PUT";
  path.target = "/b/l?a=1";
  query.target = "/b/k?a=2";
  host.headers[0].second = "localhost:9001";
  const Credentials other{kExample.access_key_id, "another secret", ""};

  EXPECT_EQ(good.check(kDate.time()).verdict, SignatureVerdict::kValid);
  for (const Sent& bad : {method, path, query, host}) {
    EXPECT_EQ(bad.check(kDate.time()).verdict, SignatureVerdict::kMismatch);
  }
  EXPECT_EQ(good.check(kDate.time(), {}, other).verdict,
            SignatureVerdict::kMismatch);
}

TEST(VerifySignatureTest, KnowsUnknownKeysSkewRegionAndAnonymous) {
  const Sent good = signed_request("k", {});
  Sent anonymous = good;
  anonymous.headers.pop_back();
  const Credentials other{"AKIDOTHER", "x", ""};

  EXPECT_EQ(good.check(kDate.time(), {}, other).verdict,
            SignatureVerdict::kUnknownKey);
  EXPECT_EQ(good.check(kDate.time() + 901s).verdict, SignatureVerdict::kSkewed);
  EXPECT_EQ(good.check(kDate.time() - 901s).verdict, SignatureVerdict::kSkewed);
  EXPECT_EQ(good.check(kDate.time() + 900s).verdict, SignatureVerdict::kValid);
  EXPECT_EQ(good.check(kDate.time(), {.region = "eu-west-1"}).verdict,
            SignatureVerdict::kWrongRegion);
  EXPECT_EQ(anonymous.check(kDate.time()).verdict,
            SignatureVerdict::kAnonymous);
}

TEST(VerifySignatureTest, WantsTheSessionTokenOfTemporaryCredentials) {
  const Credentials temporary{"ASIA", "secret", "token"};
  const Sent sent = signed_request("k", {}, temporary);

  EXPECT_EQ(sent.check(kDate.time(), {}, temporary).verdict,
            SignatureVerdict::kValid);
  EXPECT_EQ(sent.check(kDate.time(), {}, {"ASIA", "secret", "renewed"}).verdict,
            SignatureVerdict::kMismatch);
}

TEST(VerifySignatureTest, RefusesASignatureThatDoesNotCoverTheHost) {
  Sent sent = signed_request("k", {});
  std::string& value = sent.headers.back().second;
  value.replace(value.find("host;"), 5, "");

  EXPECT_EQ(sent.check(kDate.time()).verdict, SignatureVerdict::kMalformed);
}

TEST(VerifySignatureTest, AnswersAnyGarbageWithAVerdict) {
  std::mt19937 random(7);
  const std::string good_header = signed_request("k", {}).headers.back().second;
  const std::string good_target = presigned_example().target;
  for (int round = 0; round < 4000; ++round) {
    Sent header = signed_request("k", {});
    Sent target = presigned_example();
    for (std::string* text : {&header.headers.back().second, &target.target}) {
      const std::size_t at = random() % text->size();
      if (random() % 4 == 0) {
        text->resize(at);
      } else {
        (*text)[at] = static_cast<char>(random());
      }
    }

    const bool is_changed = header.headers.back().second != good_header;
    EXPECT_EQ(header.check(kDate.time()).verdict == SignatureVerdict::kValid,
              !is_changed)
        << header.headers.back().second;
    (void)target.check(kDate.time());
  }
}

TEST(VerifySignatureTest, EveryRefusalHasACodeAndAReason) {
  EXPECT_EQ(s3_error_code(SignatureVerdict::kMismatch),
            "SignatureDoesNotMatch");
  EXPECT_EQ(s3_error_status(SignatureVerdict::kMismatch), 403);
  EXPECT_EQ(s3_error_code(SignatureVerdict::kWrongRegion),
            "AuthorizationHeaderMalformed");
  EXPECT_EQ(s3_error_status(SignatureVerdict::kWrongRegion), 400);
  Sent sent = signed_request("k", {});
  sent.target = "/other";
  const CheckedSignature checked = sent.check(kDate.time());
  EXPECT_NE(checked.reason, "");
  EXPECT_EQ(checked.reason.find(kExample.secret_access_key), std::string::npos);
}

}  // namespace
}  // namespace leat
