#include "leat/serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

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

  void send(std::string_view text) {
    ASSERT_EQ(
        ::send(socket_.descriptor(), text.data(), text.size(), MSG_NOSIGNAL),
        ssize_t(text.size()));
  }

  /// Reads until `text` ends what came, the server leaves, or 5 s pass.
  std::string read_until(std::string_view text) {
    std::string got;
    while (!got.ends_with(text)) {
      if (!read_some(got, milliseconds(5000))) break;
    }
    return got;
  }
  std::string read_all() { return read_until("nothing ends with this"); }

  /// False if nothing more comes: `timed_out` tells why.
  bool read_some(std::string& into, milliseconds wait) {
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

Reply echo(const std::string& what) {
  Reply reply;
  reply.body = "[" + what + "]";
  return reply;
}

std::unique_ptr<HttpServer> serve(HttpService& service,
                                  const HttpServerOptions& options = {}) {
  auto server = open_http_server(options, service);
  EXPECT_TRUE(server) << server.error().message();
  return *std::move(server);
}

TEST(HttpServerTest, AnswersAndKeepsTheConnection) {
  FakeService service(echo);
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_until("]"),
            "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n[GET /a]");
  client.send("PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_TRUE(client.read_until("]").ends_with("\r\n\r\n[PUT /bbody]"));
}

TEST(HttpServerTest, AnswersPipelinedRequestsInTheirOrder) {
  FakeService service(echo);
  const auto server = serve(service);
  RawClient client(server->port());
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += "GET /a HTTP/1.1\r\n\r\n";

  client.send(requests + "GET /last HTTP/1.1\r\n\r\n");

  const std::string replies = client.read_until("[GET /last]");
  std::size_t found = 0;
  for (std::size_t at = 0;
       (at = replies.find("[GET /a]", at)) != std::string::npos; ++at)
    ++found;
  EXPECT_EQ(found, 1000u);
}

TEST(HttpServerTest, ReadsChunkedBodiesAndIgnoresTheirTrailers) {
  FakeService service(echo);
  const auto server = serve(service);
  RawClient client(server->port());

  client.send(
      "PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n" +
      ("Trailer: " + std::string(3000, 'x')) + "\r\n\r\n");

  EXPECT_TRUE(client.read_until("]").ends_with("[PUT /cabcdefg]"));
}

TEST(HttpServerTest, InvitesABodyThatIsWanted) {
  FakeService service(echo);
  const auto server = serve(service);
  RawClient client(server->port());

  client.send(
      "PUT /d HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_TRUE(client.read_until("]").ends_with("[PUT /dok]"));
}

TEST(HttpServerTest, DoesNotInviteABodyThatIsNotWanted) {
  FakeService service(echo);
  service.wants_body = false;
  const auto server = serve(service);
  RawClient client(server->port());

  client.send(
      "PUT /d HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");

  EXPECT_EQ(client.read_until("]").find("100 Continue"), std::string::npos);
}

TEST(HttpServerTest, RefusesWhatIsNotHttp) {
  FakeService service(echo);
  const auto server = serve(service);
  for (const std::string& noise :
       {std::string("hello\r\n\r\n"), std::string("GET /a HTTP/9.9\r\n\r\n"),
        "GET /" + std::string(70 << 10, 'a') + " HTTP/1.1\r\n\r\n",
        std::string("PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string(
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    RawClient client(server->port());
    client.send(noise);
    EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 400 Bad Request"));
    EXPECT_FALSE(client.timed_out);
  }
}

TEST(HttpServerTest, HoldsTheFirstByteBackAsLongAsAsked) {
  FakeService service([](const std::string&) {
    Reply reply;
    reply.delay = milliseconds(60);
    return reply;
  });
  const auto server = serve(service);
  RawClient client(server->port());
  const TimePoint start = SteadyClock().now();

  client.send("GET / HTTP/1.1\r\n\r\n");
  (void)client.read_until("\r\n\r\n");

  EXPECT_GE(SteadyClock().now() - start, milliseconds(60));
}

TEST(HttpServerTest, HeadAndNotModifiedHaveNoBody) {
  FakeService service([](const std::string& what) {
    Reply reply = echo(what);
    if (what == "GET /old") reply.status = 304;
    return reply;
  });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send(
      "HEAD /a HTTP/1.1\r\n\r\nGET /old HTTP/1.1\r\n\r\nGET /z "
      "HTTP/1.1\r\n\r\n");

  EXPECT_EQ(client.read_until("]"),
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
            "HTTP/1.1 304 Not Modified\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n[GET /z]");
}

Reply ending_with(Ending ending) {
  Reply reply;
  reply.body = "12345678";
  reply.ending = ending;
  return reply;
}

TEST(HttpServerTest, CutsABodyInHalf) {
  FakeService service([](auto&) { return ending_with(Ending::kTruncate); });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  const std::string reply = client.read_all();
  EXPECT_TRUE(reply.ends_with("\r\n\r\n1234")) << reply;
  EXPECT_NE(reply.find("Content-Length: 8\r\n"), std::string::npos);
  EXPECT_FALSE(client.timed_out);
}

TEST(HttpServerTest, ResetsAConnection) {
  FakeService service([](auto&) { return ending_with(Ending::kReset); });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.was_reset);
}

TEST(HttpServerTest, StallsInTheMiddleOfABody) {
  FakeService service([](auto&) { return ending_with(Ending::kStall); });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  EXPECT_TRUE(client.read_until("1234").ends_with("\r\n\r\n1234"));
  std::string more;
  EXPECT_FALSE(client.read_some(more, milliseconds(100)));
  EXPECT_TRUE(client.timed_out);
}

std::string temporary_file(std::size_t size) {
  std::string path = testing::TempDir() + "http_server_test_file";
  const OpenFile file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600));
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = char(i * 7 + (i >> 12));
  EXPECT_EQ(::write(file.descriptor(), bytes.data(), size), ssize_t(size));
  return path;
}

TEST(HttpServerTest, SendsARangeOfALargeFile) {
  constexpr std::size_t kSize = 3 << 20;
  constexpr std::size_t kOffset = 12'345;
  const auto file = std::make_shared<OpenFile>(
      ::open(temporary_file(kSize).c_str(), O_RDONLY));
  FakeService service([&](auto&) {
    Reply reply;
    reply.file = FileRange{file, kOffset, kSize - kOffset};
    return reply;
  });
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");

  const std::string reply = client.read_all();
  const std::size_t body = reply.find("\r\n\r\n") + 4;
  ASSERT_EQ(reply.size() - body, kSize - kOffset);
  for (std::size_t i = kOffset; i < kSize; ++i) {
    ASSERT_EQ(reply[body + i - kOffset], char(i * 7 + (i >> 12))) << i;
  }
}

TEST(HttpServerTest, KeepsToTheRateOfAConnection) {
  FakeService service([](auto&) {
    Reply reply;
    reply.body = std::string(200'000, 'x');
    return reply;
  });
  HttpServerOptions options;
  options.connection_bytes_per_second = 1'000'000;
  const auto server = serve(service, options);
  RawClient client(server->port());
  const TimePoint start = SteadyClock().now();

  client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  (void)client.read_all();

  EXPECT_GE(SteadyClock().now() - start, milliseconds(190));
  EXPECT_LE(SteadyClock().now() - start, milliseconds(600));
}

TEST(HttpServerTest, TakesRepliesFromOtherThreads) {
  std::vector<std::future<void>> later;
  struct Slow final : HttpService, Exchange {
    std::unique_ptr<Exchange> begin(const RequestHead&) override {
      struct Forward final : Exchange {
        explicit Forward(Slow& to) : slow(to) {}
        void on_request(SendReply send) override { slow.on_request(send); }
        Slow& slow;
      };
      return std::make_unique<Forward>(*this);
    }
    void on_request(SendReply send) override {
      later->push_back(std::async(std::launch::async,
                                  [send] { send(echo("from elsewhere")); }));
    }
    std::vector<std::future<void>>* later = nullptr;
  } service;
  service.later = &later;
  const auto server = serve(service);
  RawClient client(server->port());

  client.send("GET / HTTP/1.1\r\n\r\n");

  EXPECT_TRUE(client.read_until("]").ends_with("[from elsewhere]"));
}

TEST(HttpServerTest, EndsWithinASecondWhateverIsOpen) {
  FakeService service([](const std::string& what) {
    Reply reply = echo(what);
    if (what == "GET /slow") reply.delay = std::chrono::hours(1);
    if (what == "GET /stall") reply.ending = Ending::kStall;
    return reply;
  });
  auto server = serve(service);
  RawClient idle(server->port());
  RawClient slow(server->port());
  RawClient stalled(server->port());
  idle.send("GET / HTTP/1.1\r\n\r\n");
  (void)idle.read_until("]");
  stalled.send("GET /stall HTTP/1.1\r\n\r\n");
  (void)stalled.read_until("[GET /");
  slow.send("GET /slow HTTP/1.1\r\n\r\n");
  while (service.alive == 0) std::this_thread::yield();
  const TimePoint start = SteadyClock().now();

  const std::uint16_t port = server->port();
  server.reset();

  EXPECT_LE(SteadyClock().now() - start, milliseconds(1000));
  EXPECT_EQ(service.alive, 0);
  EXPECT_FALSE(RawClient(port).is_connected());
}

TEST(HttpServerTest, SaysWhyItCannotListen) {
  FakeService service(echo);
  const auto server = serve(service);
  HttpServerOptions options;
  options.port = server->port();

  const auto taken = open_http_server(options, service);
  options.host = "not an address";
  const auto nowhere = open_http_server(options, service);

  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::kUnavailable);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
