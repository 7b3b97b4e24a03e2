#include "leat/store/s3/s3_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "leat/store/cloud/http_date.h"
#include "leat/store/cloud/testing/fake_http.h"
#include "leat/store/s3/aws/sigv4_verify.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Credentials kKeys{"AKTEST", "SKTESTSECRET", ""};
const ReplyHeaders kFirstFour{{"content-range", "bytes 0-3/99"}};
const WallTime kNow = AmzDate::parse("20240229T120000Z")->time();

S3Settings local_settings() {
  S3Settings settings;
  settings.host = "localhost:9000";
  settings.base_path = "/ds";
  settings.base_url = "http://localhost:9000/ds";
  settings.region = "us-east-1";
  settings.credentials = kKeys;
  return settings;
}

std::string error_xml(std::string_view code, std::string_view message = "why") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" +
         std::string(code) + "</Code><Message>" + std::string(message) +
         "</Message><RequestId>R1</RequestId></Error>";
}

class S3StoreTest : public ::testing::Test {
 protected:
  explicit S3StoreTest(S3Settings settings = local_settings())
      : store_(open_s3_store("ds", std::move(settings),
                             std::make_unique<FakeHttp>(script_),
                             [this] { return now_; })) {}

  Result<void> read(std::string key, std::uint64_t offset, std::size_t size,
                    std::string etag = {}) {
    got_.assign(size, '?');
    return read_range(
        *store_,
        {.object = {.key = std::move(key), .etag = std::move(etag)},
         .offset = offset,
         .into = std::as_writable_bytes(std::span(got_)),
         .observer = nullptr},
        {});
  }

  /// A server's verdict on the last request.
  SignatureVerdict judge_last(const Credentials& keys = kKeys) const {
    const HttpRequest& request = script_.asked.back();
    std::vector<ReceivedRequest::Header> headers = {{"host", "localhost:9000"}};
    for (const std::string& line : request.headers) {
      const std::size_t colon = line.find(": ");
      headers.emplace_back(std::string_view(line).substr(0, colon),
                           std::string_view(line).substr(colon + 2));
    }
    return verify_signature(
               {request.method,
                std::string_view(request.url)
                    .substr(strlen("http://localhost:"
                                   "9000")),
                headers},
               [&](std::string_view) { return keys; }, now_)
        .verdict;
  }

  WallTime now_ = kNow;
  HttpScript script_;
  std::unique_ptr<Store> store_;
  std::string got_;
};

TEST_F(S3StoreTest, ReadsARangeOfTheVersionAskedFor) {
  script_.answer(206, "abcd",
                 {{"content-range", "bytes 10-13/99"}, {"etag", "\"e\""}});

  ASSERT_TRUE(read("dt=2024/a b+c.jpg", 10, 4, "\"e\""));

  EXPECT_EQ(got_, "abcd");
  const HttpRequest& request = script_.asked.at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.url, "http://localhost:9000/ds/dt%3D2024/a%20b%2Bc.jpg");
  EXPECT_EQ(HttpScript::header(request, "Range"), "bytes=10-13");
  EXPECT_EQ(HttpScript::header(request, "If-Match"), "\"e\"");
  EXPECT_EQ(HttpScript::header(request, "x-amz-date"), "20240229T120000Z");
  EXPECT_EQ(HttpScript::header(request, "x-amz-content-sha256"), kEmptyPayload);
  EXPECT_EQ(HttpScript::header(request, "x-amz-checksum-mode"), "ENABLED");
  EXPECT_THAT(HttpScript::header(request, "Authorization"),
              HasSubstr("host;x-amz-checksum-mode;x-amz-content-sha256;"));
  EXPECT_EQ(judge_last(), SignatureVerdict::kValid);
}

TEST_F(S3StoreTest, RefusesRangesThatCannotBeWithoutAsking) {
  EXPECT_EQ(read("k", 0, 0).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read("k", ~std::uint64_t{0}, 2).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(read("", 0, 1).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read("k", 0, 1, "\"e\"\r\nX: y").error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(script_.asked.empty());
}

TEST_F(S3StoreTest, TakesAWholeObjectForARangeOnlyWhereItIsOne) {
  script_.answer(200, "abcd");
  EXPECT_TRUE(read("k", 0, 4));

  script_.answer(200, "abcd");
  EXPECT_EQ(read("k", 4, 4).error().code(), ErrorCode::kInvalidArgument);

  script_.answer(206, "abcd", {{"content-range", "bytes 0-3/99"}});
  EXPECT_EQ(read("k", 4, 4).error().code(), ErrorCode::kUnavailable);
}

TEST_F(S3StoreTest, NoticesAnotherVersionEvenIfTheServerIgnoresIfMatch) {
  script_.answer(206, "abcd",
                 {{"content-range", "bytes 0-3/99"}, {"etag", "\"new\""}});

  const auto result = read("k", 0, 4, "\"old\"");

  EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(result.error().message(),
              AllOf(HasSubstr("s3://ds/k"), HasSubstr("index again")));
}

TEST_F(S3StoreTest, MapsErrorsByCodeAndSaysWhatToDo) {
  struct Row {
    int status;
    std::string_view code;
    ErrorCode error;
    std::string_view says;
  };
  const Row rows[] = {
      {404, "NoSuchKey", ErrorCode::kNotFound, "no object of this key"},
      {404, "NoSuchBucket", ErrorCode::kNotFound, "no bucket of this name"},
      {403, "AccessDenied", ErrorCode::kPermissionDenied, "s3:GetObject"},
      {403, "SignatureDoesNotMatch", ErrorCode::kPermissionDenied,
       "AWS_SECRET_ACCESS_KEY"},
      {403, "InvalidAccessKeyId", ErrorCode::kPermissionDenied,
       "AWS_ACCESS_KEY_ID"},
      {400, "ExpiredToken", ErrorCode::kPermissionDenied, "AWS_SESSION_TOKEN"},
      {403, "RequestTimeTooSkewed", ErrorCode::kPermissionDenied, "clock"},
      {503, "SlowDown", ErrorCode::kThrottled, "max_in_flight"},
      {503, "ServiceUnavailable", ErrorCode::kThrottled, "max_in_flight"},
      {400, "ThrottlingException", ErrorCode::kThrottled, "max_in_flight"},
      {500, "InternalError", ErrorCode::kUnavailable, "may recover"},
      {400, "RequestTimeout", ErrorCode::kUnavailable, "may recover"},
      {412, "PreconditionFailed", ErrorCode::kCorrupt, "index again"},
      {416, "InvalidRange", ErrorCode::kInvalidArgument, "past the end"},
      {403, "InvalidObjectState", ErrorCode::kInvalidArgument, "archived"},
      {400, "SomethingElse", ErrorCode::kInvalidArgument, "does not accept"},
      {502, "", ErrorCode::kUnavailable, "may recover"},
      {429, "", ErrorCode::kThrottled, "max_in_flight"},
  };
  for (const Row& row : rows) {
    script_.answer(row.status,
                   row.code.empty() ? "<html>" : error_xml(row.code));

    const auto result = read("a/k", 0, 4);

    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), row.error) << row.code;
    EXPECT_THAT(result.error().message(),
                AllOf(HasSubstr("reading s3://ds/a/k [0, 4): HTTP "),
                      HasSubstr(std::string(row.code)),
                      HasSubstr(std::string(row.says)),
                      Not(HasSubstr(kKeys.secret_access_key))));
  }
}

TEST_F(S3StoreTest, GoesToTheRegionThatTheReplyNames) {
  script_.answer(301,
                 "<Error><Code>PermanentRedirect</Code><Message>m</Message>"
                 "<Endpoint>ds.s3.eu-west-1.amazonaws.com</Endpoint></Error>",
                 {{"x-amz-bucket-region", "eu-west-1"}});
  EXPECT_EQ(read("k", 0, 4).error().code(), ErrorCode::kUnavailable)
      << "worth another try";
  script_.answer(206, "abcd", kFirstFour);
  EXPECT_TRUE(read("k", 0, 4));

  EXPECT_THAT(HttpScript::header(script_.asked.at(0), "Authorization"),
              HasSubstr("/us-east-1/s3/"));
  EXPECT_THAT(HttpScript::header(script_.asked.at(1), "Authorization"),
              HasSubstr("/eu-west-1/s3/"));
}

TEST_F(S3StoreTest, IsNotSentFromRegionToRegion) {
  const auto elsewhere = [&](std::string_view region) {
    script_.answer(400,
                   "<Error><Code>AuthorizationHeaderMalformed</Code>"
                   "<Message>m</Message><Region>" +
                       std::string(region) + "</Region></Error>");
    return read("k", 0, 4).error();
  };

  EXPECT_EQ(elsewhere("evil.example/").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(elsewhere("us-east-1").code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(elsewhere("eu-west-1").code(), ErrorCode::kUnavailable);
  const Error second = elsewhere("us-west-2");
  EXPECT_EQ(second.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(second.message(),
              HasSubstr("set AWS_REGION=us-west-2 (--region us-west-2)"));
}

TEST_F(S3StoreTest, KeepsWhatServersSayShortAndPrintable) {
  script_.answer(
      403, error_xml("AccessDenied", "a\nb\x1b[31m" + std::string(5000, 'x')));

  const auto result = read("new\nline", 0, 4);

  EXPECT_LT(result.error().message().size(), 1000u);
  for (const char c : result.error().message()) EXPECT_GE(c, ' ');
}

TEST_F(S3StoreTest, SignsWithTheServersTimeOnceItSaysThatOursIsWrong) {
  const auto skewed = [&] {
    script_.answer(403, error_xml("RequestTimeTooSkewed"),
                   {{"date", "Thu, 29 Feb 2024 14:00:00 GMT"}});
  };
  skewed();
  EXPECT_EQ(read("k", 0, 4).error().code(), ErrorCode::kUnavailable);
  skewed();
  EXPECT_EQ(read("k", 0, 4).error().code(), ErrorCode::kPermissionDenied)
      << "trying on would not help";

  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "x-amz-date"),
            "20240229T120000Z");
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "x-amz-date"),
            "20240229T140000Z");
}

TEST_F(S3StoreTest, SignsWithNoTimeThatNoClockShows) {
  for (const char* date :
       {"Fri, 31 Dec 9999 23:59:60 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
        "Sat, 01 Jan 0000 00:00:00 GMT", "Wed, 01 Jan 2200 00:00:00 GMT"}) {
    script_.answer(403, error_xml("RequestTimeTooSkewed"), {{"date", date}});
    EXPECT_EQ(read("k", 0, 4).error().code(), ErrorCode::kPermissionDenied)
        << date;
    script_.answer(206, "abcd", kFirstFour);
    EXPECT_TRUE(read("k", 0, 4)) << date;
    EXPECT_EQ(HttpScript::header(script_.asked.back(), "x-amz-date"),
              "20240229T120000Z");
  }
}

TEST_F(S3StoreTest, AllThatWereUnderWayGoAgainOnceOneReplyTellsTheTime) {
  std::vector<HttpDone> held;
  script_.hold = [&](HttpDone done) { held.push_back(std::move(done)); };
  std::vector<ErrorCode> codes;
  std::array<std::byte, 4> into{};
  for (int i = 0; i < 3; ++i) {
    store_->read({.object = {.key = "k", .etag = {}},
                  .offset = 0,
                  .into = into,
                  .observer = nullptr},
                 {}, [&](const Result<void>& result) {
                   codes.push_back(result.error().code());
                 });
  }

  for (const HttpDone& done : held) {
    done(HttpReply{403,
                   {{"date", "Thu, 29 Feb 2024 14:00:00 GMT"}},
                   error_xml("RequestTimeTooSkewed")});
  }

  EXPECT_THAT(codes, ::testing::Each(ErrorCode::kUnavailable));
  EXPECT_EQ(codes.size(), 3u);
}

TEST_F(S3StoreTest, ListsAPage) {
  script_.answer(
      200,
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3\">"
      "<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>"
      "<NextContinuationToken>t+/=</NextContinuationToken>"
      "<Contents><Key>p/a+b%2Bc%0A</Key><Size>5</Size>"
      "<ETag>&quot;e&quot;</ETag></Contents>"
      "<Contents><Key>p/h%C3%A9</Key><Size>0</Size><ETag>f</ETag></Contents>"
      "<CommonPrefixes><Prefix>p/x%2F</Prefix></CommonPrefixes>"
      "</ListBucketResult>");

  const auto page = store_->list(
      {.prefix = "p/", .start_after = "p/A&", .resume = {}, .delimiter = "/"},
      {});

  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[0].key, "p/a b+c\n");
  EXPECT_EQ(page->objects[0].size_bytes, 5u);
  EXPECT_EQ(page->objects[0].etag, "\"e\"");
  EXPECT_EQ(page->objects[1].key, "p/h\xc3\xa9");
  EXPECT_EQ(page->objects[1].etag, "\"f\"");
  EXPECT_THAT(page->common_prefixes, ElementsAre("p/x/"));
  EXPECT_EQ(page->resume, "t+/=");
  EXPECT_EQ(script_.asked.at(0).url,
            "http://localhost:9000/ds?delimiter=%2F&encoding-type=url&"
            "list-type=2&prefix=p%2F&start-after=p%2FA%26");
  EXPECT_EQ(judge_last(), SignatureVerdict::kValid);
}

TEST_F(S3StoreTest, GoesOnWithTheTokenAlone) {
  script_.answer(200, "<ListBucketResult/>");

  const auto page = store_->list(
      {.prefix = {}, .start_after = "a", .resume = "t+/=", .delimiter = {}},
      {});

  ASSERT_TRUE(page);
  EXPECT_TRUE(page->resume.empty());
  EXPECT_EQ(script_.asked.at(0).url,
            "http://localhost:9000/ds?continuation-token=t%2B%2F%3D&"
            "encoding-type=url&list-type=2");
}

TEST_F(S3StoreTest, ASuccessWithAnErrorInItIsAFailureOfTheService) {
  script_.answer(200, error_xml("InternalError"));
  EXPECT_EQ(store_->list({}, {}).error().code(), ErrorCode::kUnavailable);
  script_.answer(200, error_xml("SlowDown"));
  EXPECT_EQ(store_->list({}, {}).error().code(), ErrorCode::kThrottled);
  script_.answer(200, error_xml("Unheard"));
  EXPECT_EQ(store_->write("k", {}, {}).error().code(), ErrorCode::kUnavailable);
}

TEST_F(S3StoreTest, WritesWithTheHashOfTheBody) {
  script_.answer(200, "", {{"etag", "\"e\""}});

  const auto info = store_->write("a/k", as_bytes("bytes"), {});

  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->key, "a/k");
  EXPECT_EQ(info->size_bytes, 5u);
  EXPECT_EQ(info->etag, "\"e\"");
  const HttpRequest& request = script_.asked.at(0);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(as_text(request.body), "bytes");
  EXPECT_EQ(HttpScript::header(request, "x-amz-content-sha256"),
            sha256_hex("bytes"));
  EXPECT_EQ(judge_last(), SignatureVerdict::kValid);
}

TEST_F(S3StoreTest, StatsByHead) {
  script_.answer(200, "", {{"content-length", "12345678901"}, {"etag", "e"}});

  const auto info = store_->stat("k", {});

  ASSERT_TRUE(info);
  EXPECT_EQ(info->size_bytes, 12345678901u);
  EXPECT_EQ(info->etag, "e");
  EXPECT_EQ(script_.asked.at(0).method, "HEAD");
  script_.answer(200);
  EXPECT_EQ(store_->stat("k", {}).error().code(), ErrorCode::kUnavailable);
  script_.answer(404);
  EXPECT_EQ(store_->stat("k", {}).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(script_.asked.size(), 3u);
}

TEST_F(S3StoreTest, AsksWhyAHeadWasRefused) {
  script_.answer(403);
  script_.answer(403, error_xml("SignatureDoesNotMatch"));

  const auto info = store_->stat("k", {});

  EXPECT_EQ(info.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(info.error().message(), HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(S3StoreTest, PassesOnWhatTheClientSays) {
  script_.replies.emplace_back(Error(ErrorCode::kUnavailable, "reset"));
  const auto result = read("k", 0, 4);
  EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(result.error().message(), "reading s3://ds/k [0, 4): reset");

  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(store_->list({}, stopped.get_token()).error().code(),
            ErrorCode::kCancelled);
}

TEST_F(S3StoreTest, UrlsOfKeysArePrintable) {
  EXPECT_EQ(store_->url_of("a b/c=1"), "s3://ds/a b/c=1");
  EXPECT_EQ(store_->url_of("a\nb"), "s3://ds/a%0Ab");
}

class AnonymousTest : public S3StoreTest {
 protected:
  AnonymousTest() : S3StoreTest(anonymous()) {}
  static S3Settings anonymous() {
    S3Settings settings = local_settings();
    settings.credentials.reset();
    return settings;
  }
};

TEST_F(AnonymousTest, SendsNothingOfWhoWeAre) {
  script_.answer(206, "abcd", kFirstFour);

  ASSERT_TRUE(read("k", 0, 4));

  EXPECT_THAT(script_.asked.at(0).headers,
              ElementsAre("x-amz-checksum-mode: ENABLED", "Range: bytes=0-3"));
  script_.answer(403, error_xml("AccessDenied"));
  EXPECT_THAT(read("k", 0, 4).error().message(), HasSubstr("not public"));
}

class RequesterPaysTest : public S3StoreTest {
 protected:
  RequesterPaysTest() : S3StoreTest(paying()) {}
  static S3Settings paying() {
    S3Settings settings = local_settings();
    settings.requester_pays = true;
    settings.credentials->session_token = "token";
    return settings;
  }
};

TEST_F(RequesterPaysTest, SaysSoInASignedHeader) {
  script_.answer(206, "abcd", kFirstFour);

  ASSERT_TRUE(read("k", 0, 4));

  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "x-amz-request-payer"),
            "requester");
  EXPECT_THAT(HttpScript::header(script_.asked.at(0), "Authorization"),
              HasSubstr("x-amz-request-payer"));
  Credentials keys = kKeys;
  keys.session_token = "token";
  EXPECT_EQ(judge_last(keys), SignatureVerdict::kValid);
}

/// Gives "KEY1", "KEY2", …; or an error once asked to.
class CountingProvider final : public CredentialProvider {
 public:
  std::string name() const override { return "a test"; }
  bool is_local() const override { return false; }
  Result<CredentialAnswer> fetch(std::stop_token) override {
    if (fails) return Error(ErrorCode::kPermissionDenied, "no more keys");
    const std::string number = std::to_string(++fetches);
    return CredentialAnswer{TimedCredentials{
        {"KEY" + number, "SECRET" + number, "TOKEN" + number}}};
  }
  int fetches = 0;
  bool fails = false;
};

class FetchedCredentialsTest : public S3StoreTest {
 protected:
  using ProviderRef = std::shared_ptr<CountingProvider>;

  explicit FetchedCredentialsTest(
      ProviderRef provider = std::make_shared<CountingProvider>())
      : S3StoreTest(settings(provider)), provider_(std::move(provider)) {}

  static S3Settings settings(const ProviderRef& provider) {
    S3Settings settings = local_settings();
    settings.credentials.reset();
    settings.provider = provider;
    return settings;
  }

  const ProviderRef provider_;
};

TEST_F(FetchedCredentialsTest, AreFetchedOnceBeforeTheFirstRequest) {
  script_.answer(206, "abcd", kFirstFour);
  script_.answer(200, "<ListBucketResult/>");

  ASSERT_TRUE(read("k", 0, 4));
  ASSERT_TRUE(store_->list({}, {}));

  EXPECT_EQ(provider_->fetches, 1);
  EXPECT_EQ(HttpScript::header(script_.asked.at(0), "x-amz-security-token"),
            "TOKEN1");
}

TEST_F(FetchedCredentialsTest, AreFetchedAgainWhereTheServerSaysTheyAreOld) {
  script_.answer(400, error_xml("ExpiredToken"));
  script_.answer(206, "abcd", kFirstFour);
  script_.answer(400, error_xml("ExpiredToken"));

  EXPECT_EQ(read("k", 0, 4).error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(read("k", 0, 4));
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "x-amz-security-token"),
            "TOKEN2");
  EXPECT_EQ(read("k", 0, 4).error().code(), ErrorCode::kPermissionDenied)
      << "newer ones did not help";
  EXPECT_EQ(provider_->fetches, 2);
}

TEST_F(FetchedCredentialsTest, SayWhatWasReadWhereThereAreNone) {
  provider_->fails = true;

  const auto result = read("k", 0, 4);

  EXPECT_EQ(result.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(result.error().message(), "reading s3://ds/k [0, 4): no more keys");
  EXPECT_TRUE(script_.asked.empty()) << "nothing is sent unsigned";
  EXPECT_EQ(store_->stat("k", {}).error().code(), ErrorCode::kPermissionDenied);
}

class TlsTest : public S3StoreTest {
 protected:
  TlsTest() : S3StoreTest(over_tls()) {}
  static S3Settings over_tls() {
    S3Settings settings = local_settings();
    settings.base_url = "https://ds.s3.eu-west-1.amazonaws.com";
    settings.host = "ds.s3.eu-west-1.amazonaws.com";
    settings.base_path = "";
    settings.credentials->session_token = "token";
    return settings;
  }
};

TEST_F(TlsTest, LeavesThePayloadUnsignedAndSendsTheToken) {
  script_.answer(206, "abcd", kFirstFour);
  script_.answer(200, "<ListBucketResult/>");

  ASSERT_TRUE(read("k", 0, 4));
  ASSERT_TRUE(store_->list({}, {}));

  EXPECT_EQ(script_.asked[0].url, "https://ds.s3.eu-west-1.amazonaws.com/k");
  EXPECT_EQ(HttpScript::header(script_.asked[0], "x-amz-content-sha256"),
            kUnsignedPayload);
  EXPECT_EQ(HttpScript::header(script_.asked[0], "x-amz-security-token"),
            "token");
  EXPECT_EQ(script_.asked[1].url,
            "https://ds.s3.eu-west-1.amazonaws.com/?encoding-type=url&"
            "list-type=2");
}

TEST(ParseHttpDateTest, ReadsDatesAndRefusesOthers) {
  EXPECT_EQ(parse_http_date("Fri, 24 May 2013 01:02:03 GMT"),
            AmzDate::parse("20130524T010203Z")->time());
  for (const char* text :
       {"", "Fri, 24 May 2013 01:02:03 UTC", "Fri, 24 Mxy 2013 01:02:03 GMT",
        "Fri, 24 ayJ 2013 01:02:03 GMT", "Fri, 32 May 2013 01:02:03 GMT",
        "Fri, 24 May 2013 25:02:03 GMT"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
    EXPECT_FALSE(parse_server_time(text)) << text;
  }
}

TEST(ParseServerTimeTest, TakesTheTimesThatAClockMayShow) {
  EXPECT_EQ(parse_server_time("Sat, 01 Jan 2000 00:00:00 GMT"),
            AmzDate::parse("20000101T000000Z")->time());
  EXPECT_TRUE(parse_server_time("Tue, 31 Dec 2199 23:59:59 GMT"));
  for (const char* text :
       {"Tue, 31 Dec 2199 23:59:60 GMT", "Fri, 31 Dec 1999 23:59:59 GMT",
        "Fri, 31 Dec 9999 23:59:60 GMT"}) {
    EXPECT_TRUE(parse_http_date(text)) << text;
    EXPECT_FALSE(parse_server_time(text)) << text;
  }
}

}  // namespace
}  // namespace leat
