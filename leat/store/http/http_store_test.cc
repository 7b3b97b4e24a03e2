// The driver against a web server: one of our own, or the one that
// LEAT_TEST_HTTP names ("http://127.0.0.1:8080"), which serves the folder
// LEAT_TEST_HTTP_FOLDER.

#include "leat/store/http/http_store.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "leat/store/testing/conformance.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Store> store_on(const ScriptedServer& server) {
  auto store = open_http_store(server.url("/"), open_http_client({}, nullptr));
  EXPECT_TRUE(store);
  return *std::move(store);
}

/// The result of a read of [offset, offset + size) of "object".
Result<std::string> read(const ScriptedServer::Answer& answer,
                         std::uint64_t offset, std::size_t size,
                         const std::string& etag = "") {
  const ScriptedServer server(answer);
  const auto store = store_on(server);
  std::string bytes(size, '#');
  LEAT_TRY_VOID(read_range(
      *store,
      {.object = {.key = "object", .etag = etag},
       .offset = offset,
       .into = std::as_writable_bytes(std::span(bytes.data(), size))},
      {}));
  return bytes;
}

/// A store over a new folder of the web server that is at `url`.
std::shared_ptr<Store> on_web_server(const std::string& url,
                                     const Objects& objects) {
  static int opened = 0;
  const std::string name = "conformance-" + std::to_string(::getpid()) + "-" +
                           std::to_string(opened++);
  const char* const served = std::getenv("LEAT_TEST_HTTP_FOLDER");
  if (served == nullptr) {
    ADD_FAILURE() << "LEAT_TEST_HTTP_FOLDER does not say what it serves";
    return nullptr;
  }
  const auto folder = std::filesystem::path(served) / name;
  std::filesystem::create_directories(folder);
  for (const auto& [key, bytes] : objects) {
    std::filesystem::create_directories((folder / key).parent_path());
    std::ofstream file(folder / key, std::ios::binary);
    file << bytes;
    EXPECT_TRUE(file.flush()) << folder / key;
  }
  auto store = open_http_store(url + "/" + name, open_http_client({}, nullptr));
  EXPECT_TRUE(store) << store.error().message();
  return *std::move(store);
}

std::shared_ptr<Store> conforming_store(const Objects& objects) {
  if (const char* const url = std::getenv("LEAT_TEST_HTTP")) {
    return on_web_server(url, objects);
  }
  auto server = std::make_shared<ScriptedServer>(serve_objects(objects));
  auto store = store_on(*server);
  return owning(std::move(server), std::move(store));
}

ScriptedServer::Answer always(const ServerReply& reply) {
  return [reply](const ServerRequest&) { return reply; };
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Http, StoreConformanceTest,
                         conforming({.open = &conforming_store}));

TEST(HttpStoreTest, TakesAWholeObjectOnlyWhereTheWholeWasAskedFor) {
  const auto ignores_ranges = always({.status = 200, .body = "0123456789"});

  const auto whole = read(ignores_ranges, 0, 10);
  const auto front = read(ignores_ranges, 0, 5);
  const auto other = read(ignores_ranges, 10, 10);
  const auto too_much = read(ignores_ranges, 0, 11);

  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(*whole, "0123456789");
  for (const auto& refused : {front, other}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("ignores ranges"));
  }
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), ErrorCode::kInvalidArgument);
}

TEST(HttpStoreTest, ChecksWhichRangeCame) {
  for (const char* range :
       {"bytes 1-10/100", "bytes 0-8/100", "nonsense", ""}) {
    const auto result = read(always({.status = 206,
                                     .headers = {{"Content-Range", range}},
                                     .body = "0123456789"}),
                             0, 10);
    ASSERT_FALSE(result) << range;
    EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable) << range;
  }
}

TEST(HttpStoreTest, ComparesETagsThatTheServerDidNotCheck) {
  const auto answer = always(
      {.status = 206,
       .headers = {{"Content-Range", "bytes 0-2/3"}, {"ETag", "W/\"new\""}},
       .body = "abc"});

  EXPECT_TRUE(read(answer, 0, 3, "W/\"new\""));
  const auto changed = read(answer, 0, 3, "W/\"old\"");

  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code(), ErrorCode::kCorrupt);
}

TEST(HttpStoreTest, TellsFailuresApart) {
  struct Case {
    int status;
    ErrorCode code;
  };
  for (const Case& expected :
       std::vector<Case>{{403, ErrorCode::kPermissionDenied},
                         {404, ErrorCode::kNotFound},
                         {412, ErrorCode::kCorrupt},
                         {416, ErrorCode::kInvalidArgument},
                         {429, ErrorCode::kThrottled},
                         {500, ErrorCode::kUnavailable},
                         {503, ErrorCode::kThrottled}}) {
    const auto result = read(always({.status = expected.status}), 0, 10);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), expected.code) << expected.status;
    EXPECT_THAT(result.error().message(), HasSubstr("/object"));
  }
}

TEST(HttpStoreTest, SendsNoKeyThatLeavesTheBase) {
  const ScriptedServer server(always({.status = 206, .body = "x"}));
  const auto store = store_on(server);
  std::byte byte{};

  for (const char* key : {"../x", "a/../x", "a/..", "/x", "", "."}) {
    const auto result = read_range(
        *store, {.object = {.key = key}, .into = std::span(&byte, 1)}, {});
    ASSERT_FALSE(result) << key;
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(server.requests(), 0u);
}

TEST(HttpStoreTest, RefusesABaseThatIsNoPlace) {
  for (const char* url : {"ftp://h/x", "http://h/x?y=1", "http://u:p@h/x"}) {
    EXPECT_FALSE(open_http_store(url, open_http_client({}, nullptr))) << url;
  }
}

TEST(HttpStoreTest, SaysSoIfAServerHidesTheSize) {
  const ScriptedServer server(always({.status = 200, .tells_length = false}));
  const auto store = store_on(server);

  const auto info = store->stat("object", {});

  ASSERT_FALSE(info);
  EXPECT_THAT(info.error().message(), HasSubstr("size"));
}

}  // namespace leat::testing
