// Tests of how an I/O thread uses the addresses of a host.

#include "leat/store/http/io_thread.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/owned_fd.h"
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
      HostAddress known{.text = text};
      if (text.find(':') != std::string::npos) {
        auto& address = reinterpret_cast<sockaddr_in6&>(known.address);
        address.sin6_family = AF_INET6;
        inet_pton(AF_INET6, text.c_str(), &address.sin6_addr);
        known.size_bytes = sizeof address;
      } else {
        auto& address = reinterpret_cast<sockaddr_in&>(known.address);
        address.sin_family = AF_INET;
        inet_pton(AF_INET, text.c_str(), &address.sin_addr);
        known.size_bytes = sizeof address;
      }
      addresses.push_back(known);
    }
    return addresses;
  };
}

/// With GET, which goes over connections of our own, and with POST, which goes
/// over libcurl's.
class IoThreadTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, IoThreadTest, ::testing::Values("GET", "POST"),
                         [](const auto& method) { return method.param; });

Result<HttpReply> fetch(IoThread& io, const std::string& url,
                        const char* method = IoThreadTest::GetParam()) {
  ReplyBox<Result<HttpReply>> box;
  Submission submission{
      .request = {.method = method, .url = url},
      .stop = {},
      .done = [&](Result<HttpReply> reply) { box.put(std::move(reply)); }};
  EXPECT_TRUE(io.submit(submission));
  return box.take();
}

TEST_P(IoThreadTest, SpreadsConnectionsOverTheAddressesOfAHost) {
  constexpr std::size_t kRequests = 12;
  std::mutex mutex;
  std::map<std::string, int> requests_at;
  std::latch all_are_here(kRequests);
  // 0.0.0.0: every address of 127.0.0.0/8 leads there.
  ScriptedServer server(
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
        .request = {.method = GetParam(),
                    .url =
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

TEST_P(IoThreadTest, TriesTheNextAddressWhereOneRefuses) {
  ScriptedServer server([](const ServerRequest&) { return ServerReply{}; });
  Resolver resolver(answers({"127.0.0.9", "127.0.0.1"}));
  IoThread io({}, resolver);

  const auto reply =
      fetch(io, fmt::format("http://bucket.test:{}/x", server.port()));

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->status, 200);
}

TEST_P(IoThreadTest, SaysWhyNoAddressServed) {
  std::uint16_t port = 0;
  {
    const ScriptedServer gone(
        [](const ServerRequest&) { return ServerReply{}; });
    port = gone.port();
  }
  Resolver resolver(answers({"127.0.0.8", "127.0.0.9"}));
  IoThread io({}, resolver);

  const auto reply = fetch(io, fmt::format("http://bucket.test:{}/x", port));

  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(reply.error().message(), HasSubstr("check that the server runs"));
}

/// Listens on a port where nobody accepts, with no room left to wait: a client
/// that connects hears nothing.
class SilentPort {
 public:
  /// 0: a free port.
  SilentPort(const HostAddress& address, std::uint16_t port)
      : address_(address),
        listener_(
            socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // The same place in both families.
    reinterpret_cast<sockaddr_in&>(address_.address).sin_port = htons(port);
    const auto* at = reinterpret_cast<const sockaddr*>(&address_.address);
    is_open_ = bind(listener_.get(), at, address_.size_bytes) == 0 &&
               listen(listener_.get(), 0) == 0;
    reinterpret_cast<sockaddr_in&>(address_.address).sin_port =
        htons(this->port());
    for (int i = 0; i < 4; ++i) {
      waiting_.emplace_back(socket(address_.address.ss_family,
                                   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                   0));
      (void)connect(waiting_.back().get(), at, address_.size_bytes);
    }
  }
  bool is_open() const { return is_open_; }
  std::uint16_t port() const {
    sockaddr_in bound{};
    socklen_t size_bytes = sizeof bound;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound),
                &size_bytes);
    return ntohs(bound.sin_port);
  }

  /// From now on there is room; the first client that sends a request is
  /// answered. Returns false if none comes in 10 s.
  bool answer_one() const {
    for (pollfd coming{listener_.get(), POLLIN, 0};
         poll(&coming, 1, 10'000) == 1;) {
      const OwnedFd client(accept(listener_.get(), nullptr, nullptr));
      pollfd asking{client.get(), POLLIN, 0};
      std::array<char, 4096> request;
      if (poll(&asking, 1, 100) == 1 &&
          recv(client.get(), request.data(), request.size(), 0) > 0) {
        constexpr std::string_view kReply =
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        return send(client.get(), kReply.data(), kReply.size(), 0) > 0;
      }
    }
    return false;
  }

 private:
  HostAddress address_;
  OwnedFd listener_;
  std::vector<OwnedFd> waiting_;
  bool is_open_ = false;
};

// libcurl waits for the first address alone.
TEST(DirectGetsTest, GivesUpOnAnAddressThatIsSilentAndTriesTheNext) {
  ScriptedServer server([](const ServerRequest&) { return ServerReply{}; });
  const SilentPort silent(answers({"127.0.0.7"})("")->front(), server.port());
  ASSERT_TRUE(silent.is_open());
  Resolver resolver(answers({"127.0.0.7", "127.0.0.1"}));
  IoThread io({.options = {.connect_timeout = std::chrono::seconds(2)}},
              resolver);

  const auto reply =
      fetch(io, fmt::format("http://bucket.test:{}/x", server.port()), "GET");

  EXPECT_TRUE(reply) << reply.error().message();
}

// Linux alone would send its next packet to connect after 11 or 15 s.
TEST(DirectGetsTest, TriesAgainWhereAServerHadNoRoomForConnections) {
  const SilentPort full(answers({"127.0.0.7"})("")->front(), 0);
  ASSERT_TRUE(full.is_open());
  Resolver resolver(answers({"127.0.0.7"}));
  IoThread io({.options = {.connect_timeout = std::chrono::seconds(10)}},
              resolver);
  std::jthread server([&full] {
    std::this_thread::sleep_for(std::chrono::milliseconds(7300));
    EXPECT_TRUE(full.answer_one());
  });

  const auto reply =
      fetch(io, fmt::format("http://bucket.test:{}/x", full.port()), "GET");

  EXPECT_TRUE(reply) << reply.error().message();
}

TEST(DirectGetsTest, HardlyWaitsForAFamilyThatIsSilent) {
  ScriptedServer server([](const ServerRequest&) { return ServerReply{}; });
  const SilentPort silent(answers({"::1"})("")->front(), server.port());
  if (!silent.is_open())
    GTEST_SKIP() << "there is no IPv6 on the loopback: set "
                    "net.ipv6.conf.lo.disable_ipv6 to 0";
  Resolver resolver(answers({"::1", "127.0.0.1"}));
  // Half of it for the first address would be longer than tests may take.
  IoThread io({.options = {.connect_timeout = std::chrono::hours(1)}},
              resolver);

  for (int i = 0; i < 2; ++i) {
    const auto reply =
        fetch(io, fmt::format("http://bucket.test:{}/x", server.port()), "GET");
    EXPECT_TRUE(reply) << reply.error().message();
  }
}

/// Serves at every address of 127.0.0.0/8, and knows at which it was asked.
class ManyAddresses {
 public:
  using Reply = std::function<ServerReply(const ServerRequest&)>;

  explicit ManyAddresses(Reply reply)
      : server_(
            [this, reply = std::move(reply)](const ServerRequest& request) {
              const std::lock_guard lock(mutex_);
              asked_.push_back(request.address);
              return reply(request);
            },
            "0.0.0.0") {}

  std::string url(std::string_view target) const {
    return fmt::format("http://bucket.test:{}{}", server_.port(), target);
  }
  std::vector<std::string> take_asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> asked_;
  ScriptedServer server_;
};

TransferSettings quick_settings(Metrics* metrics = nullptr) {
  return {.options = {.stall_timeout = std::chrono::milliseconds(300),
                      .progress_window = std::chrono::milliseconds(200)},
          .metrics = metrics};
}

TEST_P(IoThreadTest, LeavesAnAddressThatStallsAloneForAWhile) {
  ManyAddresses server([](const ServerRequest& request) -> ServerReply {
    if (request.address != "127.0.0.2") {
      return {.ending = ServerEnding::kClosed};
    }
    return {.body = "never sent", .ending = ServerEnding::kStall};
  });
  Resolver resolver(answers({"127.0.0.2", "127.0.0.3", "127.0.0.4"}));
  IoThread io(quick_settings(), resolver);

  const auto late = fetch(io, server.url("/x"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kDeadlineExceeded);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(fetch(io, server.url("/x")));

  const auto asked = server.take_asked();
  ASSERT_EQ(asked.size(), 7u);
  EXPECT_EQ(std::ranges::count(asked, "127.0.0.2"), 1);
  EXPECT_GE(std::ranges::count(asked, "127.0.0.3"), 3);
  EXPECT_GE(std::ranges::count(asked, "127.0.0.4"), 3);
}

TEST_P(IoThreadTest, LeavesAnAddressThatRefusesAloneForAWhile) {
  Metrics metrics;
  ScriptedServer server([](const ServerRequest&) {
    return ServerReply{.ending = ServerEnding::kClosed};
  });
  Resolver resolver(answers({"127.0.0.9", "127.0.0.1"}));
  IoThread io(quick_settings(&metrics), resolver);

  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(
        fetch(io, fmt::format("http://bucket.test:{}/x", server.port())));
  }

  EXPECT_EQ(metrics.value(Metric::kStoreConnections), 6);
}

TEST_P(IoThreadTest, UsesAnAddressThatStallsWhereThereIsNoOther) {
  ManyAddresses server([](const ServerRequest& request) -> ServerReply {
    if (request.nth > 0) return {};
    return {.body = "never sent", .ending = ServerEnding::kStall};
  });
  Metrics metrics;
  Resolver resolver(answers({"127.0.0.2"}));
  IoThread io(quick_settings(&metrics), resolver);

  EXPECT_FALSE(fetch(io, server.url("/x")));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(fetch(io, server.url("/x")));

  EXPECT_EQ(metrics.value(Metric::kStoreConnections), 2)
      << "a connection to it is kept, though it is on the bench";
}

/// Sends `count` GETs at once, and waits for their replies.
void get_at_once(IoThread& io, const std::string& url, std::ptrdiff_t count) {
  std::latch answered(count);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    Submission submission{.request = {.url = url},
                          .stop = {},
                          .done = [&](const Result<HttpReply>& reply) {
                            EXPECT_TRUE(reply);
                            answered.count_down();
                          }};
    ASSERT_TRUE(io.submit(submission));
  }
  answered.wait();
}

// libcurl chooses among kept connections by itself.
TEST(DirectGetsTest, LeavesKeptConnectionsToAnAddressThatStallsAlone) {
  ManyAddresses server([](const ServerRequest& request) -> ServerReply {
    if (request.target == "/x") {
      return {.delay = std::chrono::milliseconds(99)};
    }
    return {.body = "never sent", .ending = ServerEnding::kStall};
  });
  Resolver resolver(answers({"127.0.0.2", "127.0.0.3"}));
  IoThread io(quick_settings(), resolver);
  get_at_once(io, server.url("/x"), 4);  // Two connections to each.
  server.take_asked();

  EXPECT_FALSE(fetch(io, server.url("/stall"), "GET"));
  const std::string sick = server.take_asked().at(0);
  get_at_once(io, server.url("/x"), 3);

  EXPECT_THAT(server.take_asked(), ::testing::Each(::testing::Ne(sick)));
}

TEST_P(IoThreadTest, TellsEachPortOfAHostApart) {
  ScriptedServer one(
      [](const ServerRequest&) { return ServerReply{.body = "1"}; });
  ScriptedServer two(
      [](const ServerRequest&) { return ServerReply{.body = "2"}; });
  Resolver resolver(answers({"127.0.0.1"}));
  IoThread io({}, resolver);

  for (int i = 0; i < 3; ++i) {
    const auto first =
        fetch(io, fmt::format("http://bucket.test:{}/x", one.port()));
    const auto second =
        fetch(io, fmt::format("http://bucket.test:{}/x", two.port()));
    ASSERT_TRUE(first) << first.error().message();
    ASSERT_TRUE(second) << second.error().message();
    EXPECT_EQ(first->body + second->body, "12");
  }
}

TEST_P(IoThreadTest, CancelsWhatWaitsForAName) {
  // Shared with the thread that asks, too: it may outlive the resolver.
  const auto may_answer = std::make_shared<std::latch>(1);
  const auto is_asked = std::make_shared<std::latch>(1);
  Resolver resolver([may_answer, is_asked](const std::string&) {
    is_asked->count_down();
    may_answer->wait();
    return answers({"127.0.0.1"})("");
  });
  std::stop_source source;
  ReplyBox<Result<HttpReply>> box;
  {
    IoThread io({}, resolver);
    Submission submission{
        .request = {.method = GetParam(), .url = "http://slow.test/x"},
        .stop = source.get_token(),
        .done = [&](Result<HttpReply> reply) { box.put(std::move(reply)); }};
    ASSERT_TRUE(io.submit(submission));
    is_asked->wait();

    source.request_stop();
    const auto reply = box.take();

    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code(), ErrorCode::kCancelled);
  }
  may_answer->count_down();  // Comes after the thread that had asked is gone.
}

}  // namespace
}  // namespace leat::testing
