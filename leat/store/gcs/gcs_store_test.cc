// The driver against a server of the JSON API: a fake one, or the emulator that
// LEAT_TEST_GCS names (fake-gcs-server, for one).

#include "leat/store/gcs/gcs_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "leat/store/cloud/testing/fake_http.h"
#include "leat/store/cloud/testing/link_world.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/gcs/testing/fake_gcs.h"
#include "leat/store/testing/conformance.h"

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

GcsSettings settings_at(const std::string& url) {
  GcsSettings settings;
  settings.endpoint = *parse_endpoint({url, "a test"});
  return settings;
}

/// Gives "TOKEN1", then "TOKEN2", …
class Tokens final : public CredentialProvider {
 public:
  std::string name() const override { return "a test"; }
  bool is_local() const override { return false; }
  Result<CredentialAnswer> fetch(std::stop_token) override {
    TimedCredentials found;
    found.keys.bearer_token = "TOKEN" + std::to_string(++fetches);
    return CredentialAnswer{std::move(found)};
  }
  std::atomic<int> fetches = 0;
};

/// Writes an empty object in parts: gcp-storage-emulator fails where the body
/// of an upload is empty.
void put_empty(HttpClient& http, const std::string& objects_url,
               const std::string& key) {
  const std::string body =
      "--part\r\nContent-Type: application/json\r\n\r\n{}\r\n"
      "--part\r\nContent-Type: application/octet-stream\r\n\r\n\r\n"
      "--part--\r\n";
  HttpRequest put;
  put.method = "POST";
  put.url = objects_url + "?uploadType=multipart&name=";
  append_uri_encoded(put.url, key, Slash::kEncode);
  put.headers = {"Content-Type: multipart/related; boundary=part"};
  put.body = leat::as_bytes(body);
  const auto reply = http.send_and_wait(put, {});
  EXPECT_TRUE(reply && reply->status == 200) << key;
}

std::shared_ptr<Store> on_emulator(const std::string& url,
                                   const Objects& objects) {
  static int bucket = 0;
  const std::string name = "conformance-" + std::to_string(::getpid()) + "-" +
                           std::to_string(bucket++);
  auto http = open_http_client({}, nullptr);
  const std::string body = "{\"name\":\"" + name + "\"}";
  HttpRequest make;
  make.method = "POST";
  make.url = url + "/storage/v1/b?project=test";
  make.headers = {"Content-Type: application/json"};
  make.body = leat::as_bytes(body);
  EXPECT_TRUE(http->send_and_wait(make, {}));
  for (const auto& [key, bytes] : objects) {
    if (bytes.empty()) {
      put_empty(*http, url + "/upload/storage/v1/b/" + name + "/o", key);
    }
  }
  std::shared_ptr<Store> store =
      open_gcs_store(name, settings_at(url), std::move(http));
  for (const auto& [key, bytes] : objects) {
    if (bytes.empty()) continue;
    EXPECT_TRUE(store->write(key, leat::as_bytes(bytes), {})) << key;
  }
  return store;
}

std::shared_ptr<Store> conforming_store(const Objects& objects) {
  if (const char* emulator = std::getenv("LEAT_TEST_GCS")) {
    return on_emulator(emulator, objects);
  }
  auto server = std::make_shared<FakeGcs>(objects, "TOKEN1");
  GcsSettings settings = settings_at(server->url());
  settings.provider = std::make_shared<Tokens>();
  auto store =
      open_gcs_store("ds", std::move(settings), open_http_client({}, nullptr));
  return owning(std::move(server), std::move(store));
}

}  // namespace

// gcp-storage-emulator serves one connection at a time, and resets those that
// find five waiting.
INSTANTIATE_TEST_SUITE_P(
    Gcs, StoreConformanceTest,
    conforming({.open = &conforming_store,
                .most_reads = std::getenv("LEAT_TEST_GCS") == nullptr ? 64u
                                                                      : 4u}));

class GcsStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open(GcsSettings settings) {
    return open_gcs_store("ds", std::move(settings),
                          std::make_unique<FakeHttp>(script_));
  }
  static GcsSettings usual() {
    return settings_at("https://storage.googleapis.com");
  }
  Result<void> read(Store& store, std::string etag = {}) {
    return four_.read(store, std::move(etag));
  }

  HttpScript script_;
  FourBytes four_;
};

TEST_F(GcsStoreTest, ReadsARangeOfTheGenerationAskedFor) {
  GcsSettings settings = usual();
  settings.provider = std::make_shared<Tokens>();
  settings.user_project = "payer";
  const auto store = open(settings);
  script_.answer(
      206, "abcd",
      {{"content-range", "bytes 10-13/99"}, {"x-goog-generation", "17"}});

  ASSERT_TRUE(read(*store, "17"));

  EXPECT_EQ(four_.got, "abcd");
  const HttpRequest& request = script_.asked.at(0);
  EXPECT_EQ(request.url,
            "https://storage.googleapis.com/storage/v1/b/ds/o/a%20b%2Fc"
            "?alt=media&ifGenerationMatch=17");
  EXPECT_EQ(request.attempt, 3u) << "a later try bears a slower server";
  EXPECT_EQ(HttpScript::header(request, "Range"), "bytes=10-13");
  EXPECT_EQ(HttpScript::header(request, "Accept-Encoding"), "gzip");
  EXPECT_EQ(HttpScript::header(request, "Authorization"), "Bearer TOKEN1");
  EXPECT_EQ(HttpScript::header(request, "x-goog-user-project"), "payer");
}

TEST_F(GcsStoreTest, NoticesAnotherGenerationThatTheServerDidNotCheck) {
  const auto store = open(usual());
  script_.answer(
      206, "abcd",
      {{"content-range", "bytes 10-13/99"}, {"x-goog-generation", "18"}});

  const auto changed = read(*store, "17");
  const auto of_another_protocol = read(*store, "\"etag\"");

  EXPECT_EQ(changed.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(changed.error().message(), HasSubstr("index again"));
  EXPECT_EQ(of_another_protocol.error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(script_.asked.size(), 1u) << "no generation: nothing is asked";
}

TEST_F(GcsStoreTest, BelievesNoBytesOfAnotherChecksum) {
  const auto store = open(usual());
  for (const std::string bytes : {"abcd", "abce"}) {
    script_.answer(
        206, bytes,
        {{"content-range", "bytes 0-3/4"}, {"x-goog-hash", "crc32c=ksgKMQ=="}});
    std::array<std::byte, 4> into{};

    const auto result =
        read_range(*store, {.object = {.key = "k"}, .into = into}, {});

    EXPECT_EQ(bool(result), bytes == "abcd");
    if (result) continue;
    EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable) << "tried again";
    EXPECT_THAT(result.error().message(),
                AllOf(HasSubstr("gs://ds/k"), HasSubstr("came changed")));
  }
}

TEST_F(GcsStoreTest, BelievesNoRangeThatTheReplyDoesNotName) {
  const auto store = open(usual());
  script_.answer(206, "abcd");
  script_.answer(206, "abcd", {{"content-range", "bytes 0-3/99"}});
  script_.answer(200, "abcd");

  EXPECT_EQ(read(*store).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(read(*store).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(read(*store).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(GcsStoreTest, FetchesANewTokenOnceWhereOneIsRefused) {
  GcsSettings settings = usual();
  const auto tokens = std::make_shared<Tokens>();
  settings.provider = tokens;
  const auto store = open(settings);
  script_.answer(401, "Unauthorized");
  script_.answer(206, "abcd", {{"content-range", "bytes 10-13/99"}});
  script_.answer(401, "Unauthorized");

  EXPECT_EQ(read(*store).error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(read(*store));
  EXPECT_EQ(HttpScript::header(script_.asked.at(1), "Authorization"),
            "Bearer TOKEN2");
  const auto refused = read(*store);
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("TOKEN")));
  EXPECT_EQ(tokens->fetches, 2);
}

TEST_F(GcsStoreTest, ShowsNoTokenThatAServerRepeats) {
  ScriptedServer server([](const ServerRequest& request) {
    return ServerReply{.status = 403, .body = request.header("authorization")};
  });
  GcsSettings settings = settings_at(server.url());
  settings.provider = std::make_shared<Tokens>();
  const auto store =
      open_gcs_store("ds", std::move(settings), open_http_client({}, nullptr));

  for (const Error& error : {read(*store).error(), store->list({}, {}).error(),
                             store->stat("k", {}).error()}) {
    EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("(hidden)"), Not(HasSubstr("TOKEN1"))));
  }
}

TEST_F(GcsStoreTest, SpeaksSignedS3WithHmacKeys) {
  GcsSettings settings = usual();
  settings.hmac_keys = Credentials{"GOOG1E", "PLANTEDSECRET", ""};
  settings.user_project = "payer";
  const auto store = open(settings);
  script_.answer(206, "abcd",
                 {{"content-range", "bytes 10-13/99"}, {"etag", "\"e\""}});
  script_.answer(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>");

  ASSERT_TRUE(read(*store, "\"e\""));
  const auto refused = read(*store);

  const HttpRequest& request = script_.asked.at(0);
  EXPECT_EQ(request.url, "https://storage.googleapis.com/ds/a%20b/c");
  EXPECT_EQ(HttpScript::header(request, "If-Match"), "\"e\"");
  EXPECT_THAT(HttpScript::header(request, "Authorization"),
              AllOf(HasSubstr("AWS4-HMAC-SHA256 Credential=GOOG1E/"),
                    HasSubstr("/auto/s3/"), HasSubstr("x-goog-user-project,")));
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("gs://ds/a b/c"), HasSubstr("GS_ACCESS_KEY_ID"),
                    Not(HasSubstr("AWS_")), Not(HasSubstr("PLANTED"))));
}

TEST_F(GcsStoreTest, GetsObjectsAsTheyAreStoredWithHmacKeysToo) {
  GcsSettings settings = usual();
  settings.hmac_keys = Credentials{"GOOG1E", "PLANTEDSECRET", ""};
  const auto store = open(settings);
  script_.answer(206, "abcd", {{"content-range", "bytes 10-13/99"}});
  script_.answer(200, "", {{"content-length", "99"}});
  script_.answer(200, "<ListBucketResult/>");

  ASSERT_TRUE(read(*store));
  ASSERT_TRUE(store->stat("k", {}));
  ASSERT_TRUE(store->list({}, {}));

  for (std::size_t object = 0; object < 2; ++object) {
    const HttpRequest& request = script_.asked.at(object);
    EXPECT_EQ(HttpScript::header(request, "Accept-Encoding"), "gzip");
    EXPECT_THAT(HttpScript::header(request, "Authorization"),
                Not(HasSubstr("accept-encoding")))
        << "proxies change it";
  }
  EXPECT_EQ(HttpScript::header(script_.asked.at(2), "Accept-Encoding"),
            "(none)")
      << "a list would come compressed";
}

TEST_F(GcsStoreTest, EndsWhereAListDoesNotAdvance) {
  const auto store = open(usual());
  const auto page = [](const std::string& inside, const std::string& token) {
    return "{" + inside + R"("nextPageToken":")" + token + R"("})";
  };
  const std::string one =
      R"("items":[{"name":"a","size":"1","generation":"7"}],)";
  for (const std::string& inside : {std::string(), one}) {
    script_.answer(200, page(inside, "t"));

    const auto same = store->list({.resume = "t"}, {});

    ASSERT_FALSE(same) << inside;
    EXPECT_EQ(same.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(same.error().message(),
                AllOf(HasSubstr("listing gs://ds/"), HasSubstr("to itself")));
  }

  for (int i = 0; i < 1100; ++i) {
    script_.answer(200, page("", std::to_string(i)));
  }
  const auto endless = store->list({}, {});

  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(endless.error().message(), HasSubstr("pages in a row"));

  script_.replies.clear();
  for (int i = 0; i < 3; ++i) script_.answer(200, page("", std::to_string(i)));
  script_.answer(200, page(one, "next"));
  const auto found = store->list({}, {});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->objects.at(0).key, "a") << "a few empty pages are usual";
  EXPECT_EQ(found->resume, "next");
}

}  // namespace leat::testing
