// What an I/O thread does with the addresses of a host.

#include "leat/store/http/io_thread.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "leat/store/reply_box.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// A resolver that knows every name by the same addresses.
Resolver::Ask answers(const std::vector<std::string>& texts) {
  return [texts](const std::string&) -> Result<std::vector<HostAddress>> {
    std::vector<HostAddress> addresses;
    for (const std::string& text : texts) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      inet_pton(AF_INET, text.c_str(), &address.sin_addr);
      HostAddress known;
      std::memcpy(&known.address, &address, sizeof(address));
      known.size_bytes = sizeof(address);
      known.text = text;
      addresses.push_back(known);
    }
    return addresses;
  };
}

Result<HttpReply> get(IoThread& io, const std::string& url) {
  ReplyBox<Result<HttpReply>> box;
  Submission submission{
      .request = {.url = url},
      .stop = {},
      .done = [&](Result<HttpReply> reply) { box.put(std::move(reply)); }};
  EXPECT_TRUE(io.submit(submission));
  return box.take();
}

TEST(IoThreadTest, SpreadsConnectionsOverTheAddressesOfAHost) {
  constexpr std::size_t kRequests = 12;
  std::mutex mutex;
  std::map<std::string, int> requests_at;
  std::latch all_are_here(kRequests);
  // 0.0.0.0: every address of 127.0.0.0/8 leads there.
  HttpServer server(
      [&](const ServerRequest& request) {
        {
          const std::lock_guard lock(mutex);
          ++requests_at[request.address];
        }
        EXPECT_EQ(request.header("host").substr(0, 12), "bucket.test:");
        all_are_here.arrive_and_wait();  // So each needs its own connection.
        return ServerReply{};
      },
      "0.0.0.0");
  Resolver resolver(answers({"127.0.0.2", "127.0.0.3", "127.0.0.4"}));
  IoThread io({}, resolver);
  std::latch answered(kRequests);

  for (std::size_t i = 0; i < kRequests; ++i) {
    Submission submission{
        .request = {.url =
                        fmt::format("http://bucket.test:{}/x", server.port())},
        .stop = {},
        .done = [&](const Result<HttpReply>& reply) {
          EXPECT_TRUE(reply);
          answered.count_down();
        }};
    EXPECT_TRUE(io.submit(submission));
  }
  answered.wait();

  EXPECT_THAT(requests_at,
              ElementsAre(Pair("127.0.0.2", 4), Pair("127.0.0.3", 4),
                          Pair("127.0.0.4", 4)));
}

TEST(IoThreadTest, TriesTheNextAddressWhereOneRefuses) {
  HttpServer server([](const ServerRequest&) { return ServerReply{}; });
  Resolver resolver(answers({"127.0.0.9", "127.0.0.1"}));
  IoThread io({}, resolver);

  const auto reply =
      get(io, fmt::format("http://bucket.test:{}/x", server.port()));

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->status, 200);
}

TEST(IoThreadTest, TellsEachPortOfAHostApart) {
  HttpServer one([](const ServerRequest&) { return ServerReply{.body = "1"}; });
  HttpServer two([](const ServerRequest&) { return ServerReply{.body = "2"}; });
  Resolver resolver(answers({"127.0.0.1"}));
  IoThread io({}, resolver);

  for (int i = 0; i < 3; ++i) {
    const auto first =
        get(io, fmt::format("http://bucket.test:{}/x", one.port()));
    const auto second =
        get(io, fmt::format("http://bucket.test:{}/x", two.port()));
    ASSERT_TRUE(first) << first.error().message();
    ASSERT_TRUE(second) << second.error().message();
    EXPECT_EQ(first->body + second->body, "12");
  }
}

TEST(IoThreadTest, CancelsWhatWaitsForAName) {
  std::latch may_answer(1);
  std::latch is_asked(1);
  Resolver resolver([&](const std::string&) {
    is_asked.count_down();
    may_answer.wait();
    return answers({"127.0.0.1"})("");
  });
  std::stop_source source;
  ReplyBox<Result<HttpReply>> box;
  {
    IoThread io({}, resolver);
    Submission submission{
        .request = {.url = "http://slow.test/x"},
        .stop = source.get_token(),
        .done = [&](Result<HttpReply> reply) { box.put(std::move(reply)); }};
    ASSERT_TRUE(io.submit(submission));
    is_asked.wait();

    source.request_stop();
    const auto reply = box.take();

    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code(), ErrorCode::kCancelled);
  }
  may_answer.count_down();  // Comes after the thread that had asked is gone.
}

}  // namespace
}  // namespace leat::testing
