#include "leat/store/s3/aws/sigv4.h"

#include <gtest/gtest.h>

#include <vector>

#include "leat/store/s3/aws/sigv4_verify.h"

namespace leat {
namespace {

using Header = SigningRequest::Header;

// The credentials, times and signatures below are those that AWS publishes in
// the S3 API reference ("Signature Calculations: Examples") and in its SigV4
// test suite.
const Credentials kExample{"AKIAIOSFODNN7EXAMPLE",
                           "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const Credentials kSuite{"AKIDEXAMPLE",
                         "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
constexpr std::string_view kHost = "examplebucket.s3.amazonaws.com";
const AmzDate kDate = *AmzDate::parse("20130524T000000Z");

std::string sign_example(std::string_view method, std::string_view path,
                         std::string_view query,
                         const std::vector<Header>& headers,
                         std::string_view payload_hash) {
  return Signer(kExample, "us-east-1")
      .signature({method, path, query, headers, payload_hash}, kDate);
}

TEST(SigV4Test, SignsAwsExampleOfARangedGet) {
  const std::vector<Header> headers = {{"host", kHost},
                                       {"range", "bytes=0-9"},
                                       {"x-amz-content-sha256", kEmptyPayload},
                                       {"x-amz-date", "20130524T000000Z"}};
  const SigningRequest request{"GET", "/test.txt", "", headers, kEmptyPayload};

  EXPECT_EQ(
      Signer(kExample, "us-east-1").authorization(request, kDate),
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
      "aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
      "Signature="
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4Test, SignsAwsExampleOfAPutWithADollarInItsKey) {
  const std::string hash = sha256_hex("Welcome to Amazon S3.");
  const std::vector<Header> headers = {
      {"date", "Fri, 24 May 2013 00:00:00 GMT"},
      {"host", kHost},
      {"x-amz-content-sha256", hash},
      {"x-amz-date", "20130524T000000Z"},
      {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};

  EXPECT_EQ(hash,
            "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
  EXPECT_EQ(sign_example("PUT", uri_encode("/test$file.text", Slash::kKeep), "",
                         headers, hash),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4Test, SignsAwsExampleOfAQueryWithoutAValue) {
  const std::vector<Header> headers = {{"host", kHost},
                                       {"x-amz-content-sha256", kEmptyPayload},
                                       {"x-amz-date", "20130524T000000Z"}};

  EXPECT_EQ(sign_example("GET", "/", canonical_query({{"lifecycle", ""}}),
                         headers, kEmptyPayload),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4Test, SignsAwsExampleOfAList) {
  const std::vector<Header> headers = {{"host", kHost},
                                       {"x-amz-content-sha256", kEmptyPayload},
                                       {"x-amz-date", "20130524T000000Z"}};

  EXPECT_EQ(sign_example("GET", "/",
                         canonical_query({{"prefix", "J"}, {"max-keys", "2"}}),
                         headers, kEmptyPayload),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4Test, SignsGetVanillaOfTheSuite) {
  const std::vector<Header> headers = {{"host", "example.amazonaws.com"},
                                       {"x-amz-date", "20150830T123600Z"}};
  const SigningRequest request{"GET", "/", "", headers, kEmptyPayload};
  const AmzDate date = *AmzDate::parse("20150830T123600Z");

  EXPECT_EQ(
      string_to_sign(date, credential_scope(date.day(), "us-east-1", "service"),
                     canonical_request(request)),
      "AWS4-HMAC-SHA256\n20150830T123600Z\n"
      "20150830/us-east-1/service/aws4_request\n"
      "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63");
  EXPECT_EQ(Signer(kSuite, "us-east-1", "service").signature(request, date),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(SigV4Test, SignsGetVanillaQueryOrderKeyCaseOfTheSuite) {
  const std::vector<Header> headers = {{"host", "example.amazonaws.com"},
                                       {"x-amz-date", "20150830T123600Z"}};
  const std::string query =
      canonical_query({{"Param2", "value2"}, {"Param1", "value1"}});

  EXPECT_EQ(query, "Param1=value1&Param2=value2");
  EXPECT_EQ(Signer(kSuite, "us-east-1", "service")
                .signature({"GET", "/", query, headers, kEmptyPayload},
                           *AmzDate::parse("20150830T123600Z")),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(SigV4Test, DerivesTheSigningKeyOfAwsDocumentation) {
  EXPECT_EQ(hex(signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                            "20150830", "us-east-1", "iam")),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
}

TEST(SigV4Test, HmacFollowsRfc4231AlsoForKeysLongerThanABlock) {
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(
                std::string(131, '\xaa'),
                "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(SigV4Test, EncodesTheKeysThatHttpLibrariesGetWrong) {
  struct Row {
    std::string_view key, in_path, in_query;
  };
  const Row rows[] = {
      {"a/b c", "a/b%20c", "a%2Fb%20c"},
      {"dt=2024/x", "dt%3D2024/x", "dt%3D2024%2Fx"},
      {"a+b", "a%2Bb", "a%2Bb"},
      {"t:1@(2)", "t%3A1%40%282%29", "t%3A1%40%282%29"},
      {"it's,*!", "it%27s%2C%2A%21", "it%27s%2C%2A%21"},
      {"%2F", "%252F", "%252F"},
      {"a//b/../c", "a//b/../c", "a%2F%2Fb%2F..%2Fc"},
      {"h\xc3\xa9", "h%C3%A9", "h%C3%A9"},
      {"-._~", "-._~", "-._~"},
      {std::string_view("\0\x7f", 2), "%00%7F", "%00%7F"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(uri_encode(row.key, Slash::kKeep), row.in_path);
    EXPECT_EQ(uri_encode(row.key, Slash::kEncode), row.in_query);
    EXPECT_EQ(uri_decode(row.in_path), row.key);
    EXPECT_EQ(uri_decode(row.in_query), row.key);
  }
}

TEST(SigV4Test, DecodingLeavesBrokenEscapesAlone) {
  EXPECT_EQ(uri_decode("100%"), "100%");
  EXPECT_EQ(uri_decode("%4"), "%4");
  EXPECT_EQ(uri_decode("%zz%41"), "%zzA");
}

TEST(SigV4Test, SortsTheQueryAfterEncodingIt) {
  // '-' sorts before '=' but the name "a" must come before "a-b".
  EXPECT_EQ(
      canonical_query({{"a-b", "1"}, {"a", "2"}, {"a", "1"}, {"\xff", ""}}),
      "%FF=&a=1&a=2&a-b=1");
}

TEST(SigV4Test, CollapsesBlanksInHeaderValues) {
  const std::vector<Header> headers = {{"host", "  a \t b  "}};

  EXPECT_EQ(canonical_request({"GET", "/", "", headers, "x"}),
            "GET\n/\n\nhost:a b\n\nhost\nx");
}

TEST(SigV4Test, TheKeyOfTheDayFollowsTheDay) {
  const std::vector<Header> headers = {{"host", "h"}};
  const SigningRequest request{"GET", "/", "", headers, kEmptyPayload};
  const Signer kept(kExample, "us-east-1");
  for (const char* text :
       {"20240228T235959Z", "20240229T000000Z", "20240228T235959Z"}) {
    const AmzDate date = *AmzDate::parse(text);
    EXPECT_EQ(kept.signature(request, date),
              Signer(kExample, "us-east-1").signature(request, date));
  }
}

TEST(AmzDateTest, WritesAndReadsTheSame) {
  using namespace std::chrono;
  const WallTime time = sys_days(2024y / February / 29) + 23h + 59min + 58s;

  const AmzDate date(time);

  EXPECT_EQ(date.text(), "20240229T235958Z");
  EXPECT_EQ(AmzDate::parse(date.text())->time(), time);
}

TEST(AmzDateTest, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "20130524", "20130524T000000", "20130524t000000Z",
        "20130229T000000Z", "20131324T000000Z", "20130524T240000Z",
        "20130524T006000Z", "2013-524T000000Z", "20130524T000000ZZ"}) {
    EXPECT_FALSE(AmzDate::parse(text)) << text;
  }
}

}  // namespace
}  // namespace leat
