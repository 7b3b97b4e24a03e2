// Both ends of a server under test: a client that speaks bytes, and a service
// that gives a test's answers.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/serve/http_server.h"

namespace leat::testing {

/// A client that writes text and reads text.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        ::connect(socket_.descriptor(), reinterpret_cast<const sockaddr*>(&to),
                  sizeof to) == 0;
  }

  bool is_connected() const { return is_connected_; }

  void send(std::string_view text) { ASSERT_TRUE(try_send(text)); }
  /// False if the server does not take it.
  bool try_send(std::string_view text) {
    return ::send(socket_.descriptor(), text.data(), text.size(),
                  MSG_NOSIGNAL) == ssize_t(text.size());
  }

  /// Reads until `text` ends what came, the server leaves, or 5 s pass.
  std::string read_until(std::string_view text) {
    std::string got;
    while (!got.ends_with(text)) {
      if (!read_some(got, std::chrono::seconds(5))) break;
    }
    return got;
  }
  std::string read_all() { return read_until("nothing ends with this"); }

  /// False if nothing more comes: `timed_out` tells why.
  bool read_some(std::string& into, std::chrono::milliseconds wait) {
    pollfd ready{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0};
    timed_out = ::poll(&ready, 1, int(wait.count())) == 0;
    if (timed_out) return false;
    char bytes[4096];
    const ssize_t got = ::recv(socket_.descriptor(), bytes, sizeof bytes, 0);
    was_reset = got < 0 && errno == ECONNRESET;
    if (got <= 0) return false;
    into.append(bytes, std::size_t(got));
    return true;
  }

  bool timed_out = false;
  bool was_reset = false;

 private:
  OpenFile socket_;
  bool is_connected_ = false;
};

/// Answers with what `answer` makes of the method, target and body.
class FakeService final : public HttpService {
 public:
  using Answer = std::function<Reply(const std::string& what)>;
  explicit FakeService(Answer answer) : answer_(std::move(answer)) {}

  std::unique_ptr<Exchange> begin(const RequestHead& head) override {
    return std::make_unique<FakeExchange>(*this, head);
  }

  std::atomic<int> alive = 0;
  std::atomic<std::uint64_t> sent_bytes = 0;
  bool wants_body = true;

 private:
  struct FakeExchange final : Exchange {
    FakeExchange(FakeService& its_service, const RequestHead& head)
        : service(its_service),
          what(std::string(head.method) + " " + std::string(head.target)) {
      ++service.alive;
    }
    ~FakeExchange() override { --service.alive; }
    bool wants_body() const override { return service.wants_body; }
    void on_body(std::span<const std::byte> piece) override {
      what += as_text(piece);
    }
    void on_request(SendReply send) override { send(service.answer_(what)); }
    void on_sent(const SentReply& sent) override {
      service.sent_bytes += sent.body_bytes;
    }
    FakeService& service;
    std::string what;
  };

  const Answer answer_;
};

inline Reply echo(const std::string& what) {
  Reply reply;
  reply.body = "[" + what + "]";
  return reply;
}

inline std::unique_ptr<HttpServer> serve(
    HttpService& service, const HttpServerOptions& options = {}) {
  auto server = open_http_server(options, service);
  EXPECT_TRUE(server) << server.error().message();
  return *std::move(server);
}

}  // namespace leat::testing
