// The S3 driver against `leat bucket`, which verifies signatures: in the clear
// and over TLS, and what both say when something is wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leat/bucket/bucket_server.h"
#include "leat/store/s3/s3_store.h"
#include "leat/store/testing/conformance.h"

namespace leat {
namespace {

using leat::testing::conforming;
using leat::testing::Objects;
using leat::testing::owning;
using leat::testing::StoreConformanceTest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string, std::less<>>;

enum class Transport { kPlain, kTls };

std::string identity_of_somebody_else() {
  const auto identity = make_self_signed_identity("localhost");
  EXPECT_TRUE(identity);
  return identity->certificate_pem;
}

const Variables kGoodKeys = {{"AWS_ACCESS_KEY_ID", "AKTEST"},
                             {"AWS_SECRET_ACCESS_KEY", "SKTESTSECRET"},
                             {"AWS_SESSION_TOKEN", "TOKEN"}};

/// A server over a folder with the bucket `ds` in it.
class World {
 public:
  explicit World(Transport transport = Transport::kPlain) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-s3-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(root_ / "data" / "ds");
    BucketOptions options;
    options.folder = (root_ / "data").string();
    options.access.credentials = {"AKTEST", "SKTESTSECRET", "TOKEN"};
    options.access.expired_token = "OLDTOKEN";
    options.http.host = "0.0.0.0";
    if (transport == Transport::kTls) trust(options);
    auto server = open_bucket_server(std::move(options));
    EXPECT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }

  ~World() {
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::unique_ptr<Store> open(const Variables& keys = kGoodKeys,
                              const std::string& bucket = "ds") {
    return open_at(url_by("127.0.0.1"), keys, bucket);
  }
  std::unique_ptr<Store> open_at(const std::string& url,
                                 const Variables& keys = kGoodKeys,
                                 const std::string& bucket = "ds") {
    S3Options options;
    options.endpoint_url = url;
    options.no_sign_request = keys.empty();
    options.ca_bundle = ca_bundle_;
    auto store = open_s3_store(bucket, options, fake_env(keys), {}, nullptr);
    EXPECT_TRUE(store) << store.error().message();
    return *std::move(store);
  }

  /// Has clients trust what is in `pem`, and nothing else.
  void trust_only(std::string_view pem) { std::ofstream(ca_bundle_) << pem; }
  std::string port() const {
    const std::string url = server_->url();
    return url.substr(url.rfind(':') + 1);
  }
  std::string url_by(const std::string& host) const {
    const std::string url = server_->url();
    return url.substr(0, url.find("://") + 3) + host + ':' + port();
  }

 private:
  void trust(BucketOptions& options) {
    auto identity = make_self_signed_identity("localhost");
    EXPECT_TRUE(identity);
    ca_bundle_ = (root_ / "ca.pem").string();
    std::ofstream(ca_bundle_) << identity->certificate_pem;
    options.http.tls = *std::move(identity);
  }

  std::filesystem::path root_;
  std::string ca_bundle_;
  std::unique_ptr<BucketServer> server_;
};

template <Transport kTransport>
std::shared_ptr<Store> open_holding(const Objects& objects) {
  auto world = std::make_shared<World>(kTransport);
  auto store = world->open();
  for (const auto& [key, bytes] : objects) {
    const auto written = store->write(key, as_bytes(bytes), {});
    EXPECT_TRUE(written) << key << ": " << written.error().message();
  }
  return owning(world, std::move(store));
}

INSTANTIATE_TEST_SUITE_P(
    S3, StoreConformanceTest,
    conforming({.open = &open_holding<Transport::kPlain>}));
INSTANTIATE_TEST_SUITE_P(S3OverTls, StoreConformanceTest,
                         conforming({.open = &open_holding<Transport::kTls>}));

TEST(S3BucketTest, SaysWhatIsWrongWithCredentials) {
  struct Row {
    Variables keys;
    std::string_view says;
  };
  const Row rows[] = {
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"},
        {"AWS_SECRET_ACCESS_KEY", "WRONGONE"},
        {"AWS_SESSION_TOKEN", "TOKEN"}},
       "SignatureDoesNotMatch"},
      {{{"AWS_ACCESS_KEY_ID", "NOBODY"},
        {"AWS_SECRET_ACCESS_KEY", "WRONGONE"},
        {"AWS_SESSION_TOKEN", "TOKEN"}},
       "InvalidAccessKeyId"},
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"},
        {"AWS_SECRET_ACCESS_KEY", "WRONGONE"},
        {"AWS_SESSION_TOKEN", "OLDTOKEN"}},
       "ExpiredToken"},
      {{}, "HTTP 403 AccessDenied"},
  };
  World world;
  ASSERT_TRUE(world.open()->write("k", as_bytes("x"), {}));
  for (const Row& row : rows) {
    const auto store = world.open(row.keys);
    std::byte byte{};
    const auto read = read_range(*store,
                                 {.object = {.key = "k", .etag = {}},
                                  .offset = 0,
                                  .into = std::span(&byte, 1),
                                  .observer = nullptr},
                                 {});
    const auto listed = store->list({}, {});
    const auto info = store->stat("k", {});

    for (const Error& error :
         {read ? Error(ErrorCode::kInternal, "read it") : read.error(),
          listed ? Error(ErrorCode::kInternal, "listed it") : listed.error(),
          info ? Error(ErrorCode::kInternal, "saw it") : info.error()}) {
      EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
      EXPECT_THAT(error.message(), AllOf(HasSubstr(std::string(row.says)),
                                         Not(HasSubstr("WRONGONE")),
                                         Not(HasSubstr("OLDTOKEN"))));
    }
  }
}

TEST(S3BucketTest, NamesTheBucketThatIsNotThere) {
  World world;

  const auto listed = world.open(kGoodKeys, "no-such-bucket")->list({}, {});

  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(listed.error().message(),
              AllOf(HasSubstr("s3://no-such-bucket/"),
                    HasSubstr("no bucket of this name")));
}

/// A read (over a connection of our own) and a look (over libcurl's).
std::vector<Error> refusals_of(Store& store) {
  std::byte byte{};
  const auto read = read_range(store,
                               {.object = {.key = "k", .etag = {}},
                                .offset = 0,
                                .into = std::span(&byte, 1),
                                .observer = nullptr},
                               {});
  const auto info = store.stat("k", {});
  return {read ? Error(ErrorCode::kInternal, "read it") : read.error(),
          info ? Error(ErrorCode::kInternal, "saw it") : info.error()};
}

TEST(S3OverTlsTest, ServesOnlyWhomItsCertificateNames) {
  World world(Transport::kTls);
  ASSERT_TRUE(world.open()->write("k", as_bytes("x"), {}));
  std::byte byte{};
  for (const char* host : {"localhost", "127.0.0.1"}) {
    const auto store = world.open_at(world.url_by(host));
    EXPECT_TRUE(read_range(*store,
                           {.object = {.key = "k", .etag = {}},
                            .offset = 0,
                            .into = std::span(&byte, 1),
                            .observer = nullptr},
                           {}))
        << host;
  }

  // The same server by an address that its certificate does not hold.
  const auto store = world.open_at(world.url_by("127.0.0.2"));

  for (const Error& error : refusals_of(*store)) {
    EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("AWS_CA_BUNDLE"));
  }
}

TEST(S3OverTlsTest, RefusesACertificateThatNobodyVouchesFor) {
  World world(Transport::kTls);
  ASSERT_TRUE(world.open()->write("k", as_bytes("x"), {}));

  world.trust_only(identity_of_somebody_else());
  for (const Error& error : refusals_of(*world.open())) {
    EXPECT_EQ(error.code(), ErrorCode::kPermissionDenied) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("AWS_CA_BUNDLE"));
  }
  world.trust_only("no certificate");
  for (const Error& error : refusals_of(*world.open())) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("AWS_CA_BUNDLE"));
  }
}

TEST(S3OverTlsTest, SaysSoIfTheServerSpeaksNoTls) {
  World world;

  const auto store = world.open_at("https://127.0.0.1:" + world.port());

  for (const Error& error : refusals_of(*store)) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("https"));
  }
}

}  // namespace
}  // namespace leat
