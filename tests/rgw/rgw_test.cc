// The S3 driver against Ceph's object gateway, which others wrote and which
// verifies signatures. run.sh starts one and names it in LEAT_RGW_URL.
// tools/test_servers.py names moto there, for the conformance suite alone.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "leat/store/list_all.h"
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

std::string gateway_url() {
  const char* const url = std::getenv("LEAT_RGW_URL");
  if (url == nullptr) ADD_FAILURE() << "run this by tests/rgw/run.sh";
  return url == nullptr ? "http://127.0.0.1:1" : url;
}

const Variables kGoodKeys = {{"AWS_ACCESS_KEY_ID", "AKTEST"},
                             {"AWS_SECRET_ACCESS_KEY", "SKTESTSECRET"}};

S3Settings settings_of(const std::string& bucket,
                       const Variables& keys = kGoodKeys) {
  S3Options options;
  options.endpoint_url = gateway_url();
  options.no_sign_request = keys.empty();
  auto settings = resolve_s3_settings(bucket, options, fake_env(keys));
  EXPECT_TRUE(settings);
  return *std::move(settings);
}

std::unique_ptr<Store> open_bucket(const std::string& bucket,
                                   const Variables& keys = kGoodKeys,
                                   WallNow now = &system_now) {
  return open_s3_store(bucket, settings_of(bucket, keys),
                       open_http_client({}, nullptr), std::move(now));
}

/// Makes a bucket of a name that no other test has.
std::string make_bucket() {
  static std::atomic<int> made = 0;
  const std::string bucket = fmt::format("test-{}", made++);
  const auto http = open_http_client({}, nullptr);
  const S3Settings settings = settings_of(bucket);
  const RequestMaker maker(settings, &system_now);
  const auto reply = http->send_and_wait(
      maker
          .make({.method = "PUT",
                 .key = {},
                 .query = {},
                 .headers = {},
                 .body = {}},
                std::make_shared<const Credentials>(*settings.credentials))
          .http,
      {});
  EXPECT_TRUE(reply && reply->status == 200);
  return bucket;
}

std::shared_ptr<Store> open_holding(const Objects& objects) {
  std::shared_ptr<Store> store = open_bucket(make_bucket());
  for (const auto& [key, bytes] : objects) {
    const auto written = store->write(key, as_bytes(bytes), {});
    EXPECT_TRUE(written) << key << ": " << written.error().message();
  }
  return store;
}

INSTANTIATE_TEST_SUITE_P(Rgw, StoreConformanceTest,
                         conforming({.open = &open_holding}));

TEST(RgwTest, TakesEveryKeyThatHttpLibrariesSignWrongly) {
  const std::vector<std::string> keys = {"dt=2024/a",
                                         "a+b",
                                         "t:1",
                                         "at@(x)",
                                         "sp ace",
                                         "it's!*,;",
                                         "a//b",
                                         "./x/../y",
                                         "%2F",
                                         "%2b",
                                         "h\xc3\xa9",
                                         "\xe5\x9b\xbe\xe7\x89\x87",  // 图片
                                         "&amp;<a>\"",
                                         "tab\there",
                                         "new\nline",
                                         "?uploads",
                                         "#",
                                         "~-._"};
  const auto store = open_bucket(make_bucket());
  for (const std::string& key : keys) {
    ASSERT_TRUE(store->write(key, as_bytes(key), {})) << key;
  }

  for (const std::string& key : keys) {
    const auto bytes = read_object(*store, key, 1000, {});
    ASSERT_TRUE(bytes) << bytes.error().message();
    EXPECT_EQ(as_text(bytes->span()), key);
    const auto page = store->list(
        {.prefix = key, .start_after = {}, .resume = {}, .delimiter = "/"}, {});
    ASSERT_TRUE(page) << page.error().message();
    ASSERT_EQ(page->objects.size(), 1u) << key;
    EXPECT_EQ(page->objects[0].key, key);
  }
  EXPECT_EQ(list_all(*store, "", {}, {})->size(), keys.size());
}

TEST(RgwTest, ListsManyPagesInParallelAsOneAfterAnother) {
  const auto store = open_bucket(make_bucket());
  std::vector<std::string> keys;
  for (int i = 0; i < 1300; ++i) {
    keys.push_back(fmt::format("flat/{:06}.jpg", i * 7));
    keys.push_back(fmt::format("nested/{}/{:04}.jpg", i % 20, i));
  }
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 8; ++i) {
      writers.emplace_back([&] {
        for (std::size_t k; (k = next.fetch_add(1)) < keys.size();) {
          EXPECT_TRUE(store->write(keys[k], as_bytes("x"), {}));
        }
      });
    }
  }
  std::sort(keys.begin(), keys.end());

  for (const std::size_t threads : {1u, 8u}) {
    const auto found =
        list_all(*store, "", {.threads = threads, .progress = {}}, {});

    ASSERT_TRUE(found) << found.error().message();
    std::vector<std::string> found_keys;
    for (const ObjectInfo& object : *found) found_keys.push_back(object.key);
    EXPECT_EQ(found_keys, keys);
  }
}

TEST(RgwTest, SaysWhatIsWrongWithCredentials) {
  struct Row {
    Variables keys;
    std::string_view says;
  };
  const Row rows[] = {
      {{{"AWS_ACCESS_KEY_ID", "AKTEST"}, {"AWS_SECRET_ACCESS_KEY", "WRONGONE"}},
       "SignatureDoesNotMatch"},
      {{{"AWS_ACCESS_KEY_ID", "NOBODY"}, {"AWS_SECRET_ACCESS_KEY", "WRONGONE"}},
       "InvalidAccessKeyId"},
      {{}, "not public"},
  };
  const std::string bucket = make_bucket();
  ASSERT_TRUE(open_bucket(bucket)->write("k", as_bytes("x"), {}));
  for (const Row& row : rows) {
    const auto store = open_bucket(bucket, row.keys);
    const auto listed = store->list({}, {});
    const auto info = store->stat("k", {});

    ASSERT_FALSE(listed);
    EXPECT_EQ(listed.error().code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(
        listed.error().message(),
        AllOf(HasSubstr(std::string(row.says)), Not(HasSubstr("WRONGONE"))));
    ASSERT_FALSE(info);
    EXPECT_EQ(info.error().code(), ErrorCode::kPermissionDenied);
    EXPECT_THAT(info.error().message(), HasSubstr(std::string(row.says)));
  }
}

TEST(RgwTest, NamesTheBucketThatIsNotThere) {
  const auto listed = open_bucket("no-such-bucket")->list({}, {});

  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(listed.error().message(), AllOf(HasSubstr("s3://no-such-bucket/"),
                                              HasSubstr("NoSuchBucket")));
}

TEST(RgwTest, AWrongClockCostsOneRequest) {
  const std::string bucket = make_bucket();
  const auto store = open_bucket(
      bucket, kGoodKeys, [] { return system_now() - std::chrono::hours(2); });

  const auto first = store->list({}, {});
  const auto second = store->list({}, {});

  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(second) << second.error().message();
}

}  // namespace
}  // namespace leat
