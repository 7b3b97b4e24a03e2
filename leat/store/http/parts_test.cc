// The pure parts of the HTTP client: URLs, statuses, Content-Range, the CA
// bundle.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/store/http/ca_bundle.h"
#include "leat/store/http/content_range.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/request_head.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HttpUrlTest, SplitsHostAndPort) {
  struct Case {
    std::string url;
    std::string host;
    int port;
    bool host_is_address;
  };
  for (const Case& expected : std::vector<Case>{
           {"http://host/x", "host", 80, false},
           {"HTTPS://Host.example", "Host.example", 443, false},
           {"http://host:8080?q=1", "host", 8080, false},
           {"http://127.0.0.1:9/x@y", "127.0.0.1", 9, true},
           {"https://[::1]:444/", "::1", 444, true},
           {"https://[2001:db8::1]#f", "2001:db8::1", 443, true}}) {
    const auto url = split_http_url(expected.url);
    ASSERT_TRUE(url) << expected.url << ": " << url.error().message();
    EXPECT_EQ(url->host, expected.host);
    EXPECT_EQ(url->port, expected.port);
    EXPECT_EQ(url->host_is_address, expected.host_is_address) << expected.url;
  }
}

TEST(HttpUrlTest, HidesWhatMayBeSecret) {
  EXPECT_EQ(url_for_people("https://u:p@h:1/a/b?sig=s#f"), "https://h:1/a/b");
  EXPECT_EQ(url_for_people("http://h/a@b"), "http://h/a@b");
  EXPECT_EQ(url_for_people("nonsense?x"), "nonsense");
}

TEST(HttpUrlTest, EncodesEverythingButUnreservedAndSlashes) {
  EXPECT_EQ(percent_encode_path("a b/+=:@%~.-_"), "a%20b/%2B%3D%3A%40%25~.-_");
  EXPECT_EQ(percent_encode_path("\xc3\xbc"), "%C3%BC");
}

std::string head_of(const HttpRequest& request) {
  const auto url = split_http_url(request.url);
  EXPECT_TRUE(url);
  EXPECT_TRUE(check_headers(request));
  return request_head(request, *url);
}

TEST(RequestHeadTest, NamesHostAndTargetAsTheServerExpectsThem) {
  const std::string rest = "User-Agent: leat\r\nAccept: */*\r\n\r\n";
  EXPECT_EQ(head_of({.url = "http://h/a%20b?c=d&e#f"}),
            "GET /a%20b?c=d&e HTTP/1.1\r\nHost: h\r\n" + rest);
  EXPECT_EQ(head_of({.url = "http://h:80"}),
            "GET / HTTP/1.1\r\nHost: h\r\n" + rest);
  EXPECT_EQ(head_of({.url = "https://h:443?x"}),
            "GET /?x HTTP/1.1\r\nHost: h\r\n" + rest);
  EXPECT_EQ(head_of({.url = "HTTPS://h:80/"}),
            "GET / HTTP/1.1\r\nHost: h:80\r\n" + rest);
  EXPECT_EQ(head_of({.url = "http://[::1]:8080//../x"}),
            "GET //../x HTTP/1.1\r\nHost: [::1]:8080\r\n" + rest);
}

TEST(RequestHeadTest, LetsTheCallersHeadersWin) {
  EXPECT_EQ(head_of({.url = "http://h/",
                     .headers = {"hOST: other", "Range: bytes=0-1", "accept: a",
                                 "User-Agent: u", "X: "}}),
            "GET / HTTP/1.1\r\nhOST: other\r\nRange: bytes=0-1\r\n"
            "accept: a\r\nUser-Agent: u\r\nX: \r\n\r\n");
}

TEST(RequestHeadTest, RefusesHeadersThatEndTheirLine) {
  using namespace std::string_literals;
  for (const std::string& header : {"A: 1\r\nB: 2"s, "A: 1\n"s, "A\0: 1"s}) {
    EXPECT_FALSE(check_headers({.url = "http://h/", .headers = {header}}));
  }
}

TEST(ContentRangeTest, ReadsOnlyWhatIsWellFormed) {
  const auto known = parse_content_range("bytes 5-9/10");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->first, 5u);
  EXPECT_EQ(known->last, 9u);
  EXPECT_EQ(known->total, 10u);
  ASSERT_TRUE(parse_content_range("bytes 0-0/*"));
  EXPECT_FALSE(parse_content_range("bytes 0-0/*")->total);
  for (const char* bad :
       {"", "bytes", "bytes ", "bytes */10", "bytes 9-5/10", "bytes 5-10/10",
        "bytes 5-9/", "bytes 5-9", "bytes 5-9/10x", "items 5-9/10",
        "bytes -9/10", "bytes 5-99999999999999999999/*"}) {
    EXPECT_FALSE(parse_content_range(bad)) << bad;
  }
}

TEST(ETagTest, TellsVersionsApartByTheOpaquePartAlone) {
  EXPECT_TRUE(same_version("\"x\"", "\"x\""));
  EXPECT_TRUE(same_version("W/\"x\"", "\"x\""));
  EXPECT_TRUE(same_version("\"x\"", "w/\"x\""));
  EXPECT_TRUE(same_version("\"x\"", "x"));
  EXPECT_FALSE(same_version("W/\"x\"", "W/\"y\""));
  EXPECT_FALSE(same_version("\"W/x\"", "\"x\""));

  EXPECT_EQ(if_match_header("\"x\""), "If-Match: \"x\"");
  EXPECT_EQ(if_match_header("W/\"x\""), std::nullopt);
  EXPECT_EQ(if_match_header(""), std::nullopt);
}

TEST(ContentRangeTest, AsksForTheLastByteToo) {
  EXPECT_EQ(range_header(0, 1), "Range: bytes=0-0");
  EXPECT_EQ(range_header(10, 4), "Range: bytes=10-13");
}

TEST(StatusTest, MapsEachStatusToWhatACallerMayDo) {
  struct Case {
    int status;
    ErrorCode code;
  };
  for (const Case& expected :
       std::vector<Case>{{400, ErrorCode::kInvalidArgument},
                         {301, ErrorCode::kInvalidArgument},
                         {401, ErrorCode::kPermissionDenied},
                         {403, ErrorCode::kPermissionDenied},
                         {404, ErrorCode::kNotFound},
                         {410, ErrorCode::kNotFound},
                         {408, ErrorCode::kUnavailable},
                         {412, ErrorCode::kCorrupt},
                         {416, ErrorCode::kInvalidArgument},
                         {429, ErrorCode::kThrottled},
                         {500, ErrorCode::kUnavailable},
                         {502, ErrorCode::kUnavailable},
                         {503, ErrorCode::kThrottled},
                         {504, ErrorCode::kUnavailable},
                         {509, ErrorCode::kThrottled},
                         {598, ErrorCode::kUnavailable}}) {
    EXPECT_EQ(error_code_of(expected.status), expected.code) << expected.status;
  }
}

TEST(StatusTest, SaysWhatWasAskedAndNoSecret) {
  const Error error =
      error_from_reply({.status = 403}, "GET",
                       "https://h/k?X-Amz-Signature=secret", "Access\nDenied");

  EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(error.message(),
              HasSubstr("GET https://h/k: HTTP 403: Access Denied ("));
  EXPECT_THAT(error.message(), Not(HasSubstr("secret")));
}

TEST(CaBundleTest, PrefersWhatIsConfiguredThenTheEnvironment) {
  const Env both =
      fake_env({{"SSL_CERT_FILE", "/s"}, {"CURL_CA_BUNDLE", "/c"}});
  const Env one = fake_env({{"SSL_CERT_FILE", ""}, {"CURL_CA_BUNDLE", "/c"}});

  EXPECT_EQ(find_ca_bundle("/mine", both), "/mine");
  EXPECT_EQ(find_ca_bundle("", both), "/s");
  EXPECT_EQ(find_ca_bundle("", one), "/c");
}

}  // namespace
}  // namespace leat
