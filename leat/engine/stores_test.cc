#include "leat/engine/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/clock.h"
#include "leat/dataset/derive.h"
#include "leat/engine/scheme.h"
#include "leat/index/open_catalogue.h"
#include "leat/store/testing/http_server.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::ScriptedServer;
using testing::ServerReply;
using testing::ServerRequest;

const Env kKeys = fake_env({{"AWS_ACCESS_KEY_ID", "AKID"},
                            {"AWS_SECRET_ACCESS_KEY", "hush-hush"},
                            {"HOME", "/nonexistent"}});

TEST(OpenStoreTest, CutsAnS3UrlIntoBucketAndPrefix) {
  StoreOptions options;
  options.endpoint_url = "http://127.0.0.1:9";

  const auto opened = open_store("s3://bucket/a/b/", options, kKeys, nullptr);

  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->prefix, "a/b");
  EXPECT_EQ(opened->url, "s3://bucket/a/b");
  EXPECT_THAT(opened->identity, HasSubstr("127.0.0.1:9"));
  EXPECT_TRUE(opened->store->traits().can_list);
}

TEST(OpenStoreTest, TellsEqualUrlsAtTwoEndpointsApart) {
  StoreOptions here;
  here.endpoint_url = "http://127.0.0.1:9";
  StoreOptions there;
  there.endpoint_url = "http://127.0.0.1:10";

  const auto first = open_store("s3://bucket/a", here, kKeys, nullptr);
  const auto second = open_store("s3://bucket/a", there, kKeys, nullptr);

  ASSERT_TRUE(first && second);
  EXPECT_NE(first->identity, second->identity);
}

TEST(OpenStoreTest, KeepsSecretsOutOfWhatItTells) {
  const auto opened = open_store("s3://bucket/a", {}, kKeys, nullptr);

  ASSERT_TRUE(opened) << opened.error().message();
  for (const std::string& text :
       {opened->identity, opened->url, opened->store->url_of("k")}) {
    EXPECT_EQ(text.find("hush"), std::string::npos);
    EXPECT_EQ(text.find("AKID"), std::string::npos);
  }
}

TEST(OpenStoreTest, KnowsAFolderByItsWholePath) {
  const std::string folder = ::testing::TempDir() + "open_store_test";
  std::filesystem::create_directories(folder);

  const auto by_path = open_store(folder + "/./", {}, kKeys, nullptr);
  const auto by_url = open_store("file://" + folder, {}, kKeys, nullptr);

  ASSERT_TRUE(by_path) << by_path.error().message();
  ASSERT_TRUE(by_url) << by_url.error().message();
  EXPECT_EQ(by_path->prefix, "");
  EXPECT_EQ(by_path->identity, by_url->identity);
  std::filesystem::remove_all(folder);
}

TEST(OpenStoreTest, RefusesWhatItDoesNotKnow) {
  const auto opened = open_store("ftp://host/a", {}, kKeys, nullptr);

  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kInvalidArgument);
}

TEST(OpenStoreTest, RefusesAWindowOfNothing) {
  StoreOptions options;
  options.max_in_flight = 0;

  EXPECT_FALSE(open_store("s3://bucket/a", options, kKeys, nullptr));
}

TEST(OpenStoreTest, HearsEachServiceAskForAWait) {
  ScriptedServer server([](const ServerRequest&) {
    return ServerReply{.status = 503, .headers = {{"Retry-After", "30"}}};
  });
  StoreOptions options;
  options.endpoint_url = server.url();
  options.no_sign_request = true;
  for (const std::string& url :
       {std::string("s3://bucket/a"), std::string("gs://bucket/a"),
        std::string("az://container/a"), std::string("hf://datasets/me/ds"),
        server.url("/a")}) {
    SCOPED_TRACE(url);
    const auto parsed = parse_url(url);
    ASSERT_TRUE(parsed) << parsed.error().message();
    const auto scheme =
        std::ranges::find(schemes(), parsed->scheme, &Scheme::name);
    const auto driver = (*scheme)->open(*parsed, options, kKeys, nullptr);
    ASSERT_TRUE(driver) << driver.error().message();
    const TimePoint began = SteadyClock().now();
    std::byte byte{};

    const auto refused =
        read_range(*driver->store,
                   {.object = {.key = "k"}, .into = std::span(&byte, 1)}, {});

    EXPECT_EQ(refused.error().code(), ErrorCode::kThrottled);
    EXPECT_GE(driver->notes->not_before() - began, std::chrono::seconds(30));
  }
}

TEST(OpenStoreTest, KnowsAServerThatHasAnsweredAnotherStore) {
  ScriptedServer server(
      [](const ServerRequest&) { return ServerReply{.status = 404}; });
  StoreOptions options;
  options.endpoint_url = server.url();
  options.no_sign_request = true;
  const auto open = [&](const std::string& url) {
    const auto parsed = parse_url(url);
    const auto scheme =
        std::ranges::find(schemes(), parsed->scheme, &Scheme::name);
    return std::move((*scheme)->open(*parsed, options, kKeys, nullptr)).value();
  };
  const TimePoint now = SteadyClock().now();
  const Driver first = open("s3://bucket/a");
  EXPECT_FALSE(first.notes->is_there(now));

  EXPECT_FALSE(first.store->stat("k", {}));

  for (const std::string& url :
       {std::string("s3://other/b"), std::string("az://container/a"),
        server.url("/a")}) {
    EXPECT_TRUE(open(url).notes->is_there(now)) << url;
  }
  options.endpoint_url = "http://127.0.0.1:9";
  EXPECT_FALSE(open("s3://bucket/a").notes->is_there(now));
}

TEST(OpenStoreTest, WaitsAsLongAsAServiceAsksAlsoBehindJoinedPlaces) {
  const auto objects = testing::serve_objects({{"bucket/a/k", "y"}});
  ScriptedServer server([&](const ServerRequest& request) {
    if (request.nth > 0) return objects(request);
    return ServerReply{.status = 503, .headers = {{"Retry-After", "1"}}};
  });
  StoreOptions options;
  options.endpoint_url = server.url();
  options.no_sign_request = true;
  const std::vector<StorePlace> places = {{"s3://bucket/a", options},
                                          {"s3://bucket/b", options}};
  const auto joined = open_joined_store(places, kKeys, nullptr);
  ASSERT_TRUE(joined) << joined.error().message();
  const TimePoint began = SteadyClock().now();
  std::byte byte{};

  const auto read = read_range(
      *joined->store,
      {.object = {.key = joined_prefix(0) + "k"}, .into = std::span(&byte, 1)},
      {});

  EXPECT_TRUE(read) << read.error().message();
  EXPECT_GE(SteadyClock().now() - began, std::chrono::seconds(1));
}

/// Serves the files of a folder as a plain web server does.
ServerReply serve_file(const std::string& folder,
                       const ServerRequest& request) {
  std::ifstream file(folder + request.target, std::ios::binary);
  if (!file) return {.status = 404};
  std::string body((std::istreambuf_iterator<char>(file)), {});
  const std::string range = request.header("range");
  if (!range.starts_with("bytes=")) return {.body = body};
  const std::size_t first = std::stoull(range.substr(6));
  const std::size_t last = std::stoull(range.substr(range.find('-') + 1));
  return {.status = 206,
          .headers = {{"Content-Range", "bytes " + range.substr(6) + "/" +
                                            std::to_string(body.size())}},
          .body = body.substr(first, last - first + 1)};
}

TEST(OpenStoreTest, APublishedFolderIsTheSameDatasetOverHttp) {
  const std::string folder = ::testing::TempDir() + "published over http";
  std::filesystem::create_directories(folder + "/my data/cat");
  std::ofstream(folder + "/my data/cat/1.jpg") << "meow";
  const auto on_disk = open_store(folder + "/my data", {}, kKeys, nullptr);
  ASSERT_TRUE(on_disk) << on_disk.error().message();
  const auto published =
      publish_catalogue(*on_disk->store, on_disk->prefix, {}, {});
  ASSERT_TRUE(published) << published.error().message();
  ScriptedServer server([&](const ServerRequest& request) {
    ServerRequest decoded = request;
    while (decoded.target.find("%20") != std::string::npos) {
      decoded.target.replace(decoded.target.find("%20"), 3, " ");
    }
    return serve_file(folder, decoded);
  });

  const auto over_http =
      open_store(server.url("/my%20data"), {}, kKeys, nullptr);
  ASSERT_TRUE(over_http) << over_http.error().message();
  const auto found = open_or_build(*over_http->store, over_http->prefix,
                                   over_http->identity, {}, fake_env({}), {});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->source, CatalogueSource::kPublished);
  EXPECT_EQ(found->catalogue->digest(), published->catalogue->digest());
  EXPECT_FALSE(etags_apply(*found->catalogue, *over_http->store));
  const auto bytes = read_object(
      *over_http->store,
      key_in_store(over_http->prefix, found->catalogue->object({0}).key), 100,
      {});
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(as_text(bytes->span()), "meow");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace leat
