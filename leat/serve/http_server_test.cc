#include "leat/serve/http_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "leat/serve/testing/raw_http.h"

namespace leat {
namespace {

using std::chrono::milliseconds;
using testing::echo;
using testing::FakeService;
using testing::RawClient;
using testing::serve;

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

TEST(HttpServerTest, RefusesABodyInACodingThatItCannotRead) {
  FakeService service(echo);
  const auto server = serve(service);
  for (const char* coding :
       {"gzip", "identity", "gzip, chunked", "chunked, gzip"}) {
    RawClient client(server->port());
    client.send(std::string("PUT /a HTTP/1.1\r\nTransfer-Encoding: ") + coding +
                "\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    const std::string answer = client.read_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request")) << coding;
    EXPECT_EQ(answer.rfind("HTTP/1.1"), 0u) << "a second reply: " << answer;
  }
  RawClient client(server->port());
  client.send(
      "PUT /a HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "1\r\nx\r\n0\r\n\r\n");
  EXPECT_TRUE(client.read_until("]").ends_with("[PUT /ax]"));
}

/// Sends `first`, then `again` until the server stops taking it or 4 MiB are
/// sent, and reads what it answers.
std::string answer_to_endless(std::uint16_t port, std::string_view first,
                              const std::string& again) {
  RawClient client(port);
  client.send(first);
  for (std::size_t sent = 0; sent < 4 << 20; sent += again.size()) {
    if (!client.try_send(again)) break;
  }
  std::string answer = client.read_all();
  EXPECT_FALSE(client.timed_out);
  return answer;
}

TEST(HttpServerTest, RefusesAHeadThatDoesNotEnd) {
  FakeService service(echo);
  const auto server = serve(service);
  // Whole lines in every buffer that the server may read them into.
  const std::string line = "a: " + std::string(1019, 'b') + "\r\n";
  ASSERT_EQ(line.size(), 1024u);
  const std::string first =
      "GET /" + std::string(1024 - 16, 'x') + " HTTP/1.1\r\n";

  const std::string answer = answer_to_endless(server->port(), first, line);

  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request")) << answer;
}

TEST(HttpServerTest, RefusesTheLineOfAChunkThatDoesNotEnd) {
  FakeService service(echo);
  const auto server = serve(service);

  const std::string answer =
      answer_to_endless(server->port(),
                        "PUT /c HTTP/1.1\r\nTransfer-Encoding: "
                        "chunked\r\n\r\n3;x=",
                        std::string(4096, 'y'));

  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request")) << answer;
}

TEST(HttpServerTest, ClosesWhoeverOwesTheRestForTooLongAndNobodyElse) {
  FakeService service([](const std::string& what) {
    Reply reply = echo(what);
    if (what == "GET /slow") reply.delay = milliseconds(5000);
    return reply;
  });
  HttpServerOptions options;
  options.patience = milliseconds(2000);
  const auto server = serve(service, options);
  RawClient idle(server->port());
  idle.send("GET / HTTP/1.1\r\n\r\n");
  (void)idle.read_until("]");
  RawClient waiting(server->port());
  waiting.send("GET /slow HTTP/1.1\r\n\r\n");
  RawClient silent(server->port());
  RawClient in_head(server->port());
  in_head.send("GET / HTTP/1.1\r\n\r\n");
  (void)in_head.read_until("]");
  in_head.send("GET / HTT");  // Its second.
  RawClient in_body(server->port());
  in_body.send("PUT / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo");
  RawClient staying(server->port());
  staying.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");

  for (RawClient* client : {&silent, &in_head, &in_body}) {
    EXPECT_EQ(client->read_all(), "");
    EXPECT_FALSE(client->timed_out);
  }
  EXPECT_TRUE(staying.read_all().ends_with("[GET /]"));  // And does not leave.
  const TimePoint until = SteadyClock().now() + std::chrono::seconds(30);
  while (server->open_connections() != 2) {
    ASSERT_LE(SteadyClock().now(), until) << server->open_connections();
    std::this_thread::yield();
  }

  EXPECT_TRUE(waiting.read_until("]").ends_with("[GET /slow]"));
  idle.send("GET /again HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(idle.read_until("]").ends_with("[GET /again]"));
}

TEST(HttpServerTest, AConnectionMoreClosesTheOneSilentForLongest) {
  FakeService service(echo);
  HttpServerOptions options;
  options.most_connections = 2;
  const auto server = open_http_server(options, service);
  ASSERT_TRUE(server);
  const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  RawClient first((*server)->port());
  RawClient second((*server)->port());
  second.send(get);
  second.read_until("]");
  first.send(get);
  first.read_until("]");

  RawClient third((*server)->port());
  third.send(get);

  EXPECT_TRUE(third.read_until("]").ends_with("[GET /a]"));
  EXPECT_EQ(second.read_until("]"), "");  // It was closed.
  EXPECT_FALSE(second.timed_out);
  first.send(get);
  EXPECT_TRUE(first.read_until("]").ends_with("[GET /a]"));
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

TEST(HttpServerTest, EndsSoonWhateverIsOpen) {
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

  // Half a second, and the delay of a busy machine; those would stay for
  // minutes.
  EXPECT_LE(SteadyClock().now() - start, std::chrono::seconds(10));
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
