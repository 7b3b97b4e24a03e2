#include "leat/store/http/http_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/store/http/first_byte_times.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

/// The code that carries a GET.
enum class Carrier { kDirect, kLibcurl };

/// Sets the environment for one test.
class EnvGuard {
 public:
  EnvGuard(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
  }
  ~EnvGuard() { unsetenv(name_); }
  EnvGuard(const EnvGuard&) = delete;
  EnvGuard& operator=(const EnvGuard&) = delete;

 private:
  const char* const name_;
};

class HttpClientTest : public ::testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override {
    if (GetParam() == Carrier::kDirect) return;
    // libcurl carries all where there is a proxy, even if not for any host.
    proxy_.emplace("http_proxy", "http://127.0.0.1:1");
    no_proxy_.emplace("no_proxy", "*");
  }

  void serve(ScriptedServer::Answer answer) {
    server_ = std::make_unique<ScriptedServer>(std::move(answer));
  }
  void serve_reply(const ServerReply& reply) {
    serve([reply](const ServerRequest&) { return reply; });
  }
  HttpClient& client() {
    if (client_ == nullptr) client_ = open_http_client(options_, &metrics_);
    return *client_;
  }
  Result<HttpReply> get(const std::string& target, std::stop_token stop = {}) {
    return client().send_and_wait({.url = server_->url(target)},
                                  std::move(stop));
  }
  Result<HttpReply> get_into(std::string& into) {
    return client().send_and_wait(
        {.url = server_->url("/x?X-Amz-Signature=secret"),
         .into = bytes_of(into)},
        {});
  }

  std::optional<EnvGuard> proxy_;
  std::optional<EnvGuard> no_proxy_;
  HttpClientOptions options_;
  Metrics metrics_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<HttpClient> client_;
};

INSTANTIATE_TEST_SUITE_P(, HttpClientTest,
                         ::testing::Values(Carrier::kDirect, Carrier::kLibcurl),
                         [](const auto& carrier) {
                           return carrier.param == Carrier::kDirect ? "Direct"
                                                                    : "Libcurl";
                         });

void expect_error(const Result<HttpReply>& result, ErrorCode code,
                  const std::string& says) {
  ASSERT_FALSE(result);
  EXPECT_EQ(to_string(result.error().code()), to_string(code))
      << result.error().message();
  EXPECT_THAT(result.error().message(), HasSubstr(says));
}

TEST_P(HttpClientTest, BringsStatusHeadersAndBody) {
  serve_reply({.status = 404,
               .headers = {{"X-What", " spaced  "}, {"Empty", ""}},
               .body = "nothing here"});

  const auto reply = get("/a%20b?c=d");

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->status, 404);
  EXPECT_EQ(reply->header("x-what"), "spaced");
  EXPECT_EQ(reply->header("empty"), "");
  EXPECT_EQ(reply->header("not-there"), "");
  EXPECT_EQ(reply->body, "nothing here");
}

TEST_P(HttpClientTest, SendsTheUrlAndHeadersAsTheyAre) {
  ServerRequest seen;
  serve([&](const ServerRequest& request) {
    seen = request;
    return ServerReply{};
  });

  const auto reply = client().send_and_wait(
      {.url = server_->url("/a/../b//c/./%2f+=:?z=1&a=%20"),
       .headers = {"X-One: 1", "X-Empty: ", "Range: bytes=1-2"}},
      {});

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, "/a/../b//c/./%2f+=:?z=1&a=%20");
  EXPECT_EQ(seen.header("x-one"), "1");
  EXPECT_EQ(seen.headers.count("x-empty"), 1u);
  EXPECT_EQ(seen.header("range"), "bytes=1-2");
  EXPECT_EQ(seen.headers.count("accept-encoding"), 0u);
}

TEST_P(HttpClientTest, SendsBodiesOfEveryMethodAndReusesHandlesForGets) {
  std::vector<ServerRequest> seen;
  serve([&](const ServerRequest& request) {
    seen.push_back(request);
    return ServerReply{};
  });
  const std::string body(300'000, 'b');
  const std::vector<std::string> methods = {"PUT", "GET",  "POST", "DELETE",
                                            "PUT", "HEAD", "GET"};

  for (std::size_t i = 0; i < methods.size(); ++i) {
    const bool has_body = i == 0 || methods[i] == "POST";
    const auto reply = client().send_and_wait(
        {.method = methods[i],
         .url = server_->url("/x"),
         .body =
             has_body ? leat::as_bytes(body) : std::span<const std::byte>()},
        {});
    ASSERT_TRUE(reply) << methods[i] << ": " << reply.error().message();
  }

  ASSERT_EQ(seen.size(), methods.size());
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const bool has_body = i == 0 || methods[i] == "POST";
    EXPECT_EQ(seen[i].method, methods[i]);
    EXPECT_TRUE(seen[i].body == (has_body ? body : "")) << i;
    EXPECT_EQ(seen[i].headers.count("content-length"),
              has_body || methods[i] == "PUT" ? 1u : 0u)
        << i;
    EXPECT_EQ(seen[i].headers.count("expect"), 0u);
  }
  // GETs have connections of their own, if they are not libcurl's too.
  EXPECT_EQ(server_->connections(), GetParam() == Carrier::kDirect ? 2u : 1u);
}

TEST_P(HttpClientTest, WritesTheBodyOfASuccessIntoItsPlace) {
  serve_reply({.status = 206, .body = "0123456789"});
  std::string place(10, '#');

  const auto reply = get_into(place);

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(place, "0123456789");
  EXPECT_EQ(reply->body, "");
}

TEST_P(HttpClientTest, TellsHowLongItTook) {
  serve_reply({.body = "x", .delay = std::chrono::milliseconds(30)});

  const auto reply = get("/x");

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_GE(reply->until_first_byte, std::chrono::milliseconds(29));
  EXPECT_GE(reply->until_last_byte, reply->until_first_byte);
}

TEST_P(HttpClientTest, KeepsTheBodyOfAFailureOutOfThePlace) {
  serve_reply({.status = 503, .body = "slow down"});
  std::string place(10, '#');

  const auto reply = get_into(place);

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(place, "##########");
  EXPECT_EQ(reply->body, "slow down");
}

TEST_P(HttpClientTest, RefusesABodyThatIsTooLong) {
  serve_reply({.status = 200, .body = std::string(100'000, 'x')});
  std::string larger(99'999 + 16, '#');
  std::string place = larger.substr(0, 99'999);

  const auto whole = client().send_and_wait(
      {.url = server_->url("/x"), .into = bytes_of(larger).first(99'999)}, {});

  expect_error(whole, ErrorCode::kInvalidArgument, "ignores ranges");
  EXPECT_EQ(larger.substr(99'999), std::string(16, '#'));
}

TEST_P(HttpClientTest, ReportsABodyThatWasCutAndShowsNoSecret) {
  serve_reply({.status = 206,
               .body = std::string(1000, 'x'),
               .ending = ServerEnding::kCut,
               .sent_bytes = 400});
  std::string place(1000, '#');

  const auto reply = get_into(place);

  expect_error(reply, ErrorCode::kUnavailable, "after 400 bytes");
  EXPECT_THAT(reply.error().message(), HasSubstr(server_->url("/x")));
  EXPECT_THAT(reply.error().message(), Not(HasSubstr("secret")));
}

TEST_P(HttpClientTest, ReportsABodyThatIsShorterThanItsPlace) {
  serve_reply({.status = 206, .body = "short"});
  std::string place(10, '#');

  expect_error(get_into(place), ErrorCode::kUnavailable, "after 5 of 10");
}

TEST_P(HttpClientTest, KnowsARangePastTheEndFromABrokenBody) {
  serve_reply({.status = 206,
               .headers = {{"Content-Range", "bytes 5-9/10"}},
               .body = "56789"});
  std::string place(10, '#');

  expect_error(get_into(place), ErrorCode::kInvalidArgument, "past the end");
}

TEST_P(HttpClientTest, ReportsAReset) {
  serve_reply({.ending = ServerEnding::kReset});

  expect_error(get("/x"), ErrorCode::kUnavailable, server_->url("/x"));
}

TEST_P(HttpClientTest, ReportsAServerThatIsNotThere) {
  serve_reply({});
  const std::string url = server_->url("/x");
  server_.reset();

  const auto reply = client().send_and_wait({.url = url}, {});

  expect_error(reply, ErrorCode::kUnavailable, "check that the server runs");
}

TEST_P(HttpClientTest, EndsATransferThatStalls) {
  options_.stall_timeout = std::chrono::seconds(1);
  serve_reply({.body = "never sent", .ending = ServerEnding::kStall});

  expect_error(get("/x"), ErrorCode::kDeadlineExceeded, "GET");
}

TEST_P(HttpClientTest, JudgesAReadByTheServersOwnTimes) {
  constexpr std::size_t kQuick = FirstByteTimes::kEnough;
  options_.io_threads = 1;
  options_.least_first_byte_timeout = std::chrono::milliseconds(300);
  serve([](const ServerRequest& request) -> ServerReply {
    if (request.nth < kQuick) return {.body = "0123456789"};
    return {.delay = std::chrono::hours(1)};
  });
  std::string place(10, '#');
  for (std::size_t i = 0; i < kQuick; ++i) ASSERT_TRUE(get_into(place));

  const auto began = std::chrono::steady_clock::now();
  const auto late = get_into(place);

  expect_error(late, ErrorCode::kDeadlineExceeded, "99 of 100 replies begin");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

TEST_P(HttpClientTest, WaitsLongerForALaterAttempt) {
  options_.progress_window = std::chrono::milliseconds(200);
  serve_reply(
      {.raw = "HTTP/1.1 206 X\r\nContent-Length: 10\r\n\r\n01234",
       .steps = {{.bytes = "56789", .pause = std::chrono::milliseconds(700)}}});
  const auto get = [&](std::uint32_t attempt) {
    std::string place(10, '#');
    auto reply = client().send_and_wait({.url = server_->url("/x"),
                                         .into = bytes_of(place),
                                         .attempt = attempt},
                                        {});
    return reply ? place : reply.error().message();
  };

  EXPECT_THAT(get(0), HasSubstr("too slow: "));
  EXPECT_THAT(get(4), "0123456789");
}

TEST_P(HttpClientTest, HandsOutABodyThatDoesNotFitWhereThatIsAskedFor) {
  serve_reply({.status = 200, .body = "not what was asked for"});
  std::string place(10, '#');

  const auto reply = client().send_and_wait({.url = server_->url("/x"),
                                             .into = bytes_of(place),
                                             .takes_misfits = true},
                                            {});

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->body, "not what was asked for");
  ASSERT_TRUE(reply->misfit);
  EXPECT_EQ(reply->misfit->code(), ErrorCode::kInvalidArgument);
}

TEST_P(HttpClientTest, LimitsTheBodyThatItKeeps) {
  serve([](const ServerRequest& request) {
    return ServerReply{.status = request.nth == 0 ? 200 : 500,
                       .body = std::string(200'000, 'x')};
  });
  const auto small = [&] {
    return client().send_and_wait(
        {.url = server_->url("/x"), .most_body_bytes = 1000}, {});
  };

  const auto success = small();
  const auto failure = small();

  expect_error(success, ErrorCode::kResourceExhausted, "1000");
  ASSERT_TRUE(failure) << failure.error().message();
  EXPECT_EQ(failure->body.size(), 1000u);
}

TEST_P(HttpClientTest, RefusesWhatIsNoHttpUrl) {
  const std::vector<std::string> urls = {
      "ftp://host/x",  "host/x",           "http://",
      "http:///x",     "http://host:0/",   "http://host:99999/",
      "http://a b/",   "http://host/\nx",  "file:///etc/passwd",
      "http://[::1/x", "http://host:8x/x", "http://u:secret@host/x"};
  for (const std::string& url : urls) {
    const auto reply = client().send_and_wait({.url = url}, {});
    ASSERT_FALSE(reply) << url;
    EXPECT_EQ(reply.error().code(), ErrorCode::kInvalidArgument) << url;
    EXPECT_THAT(reply.error().message(), Not(HasSubstr("secret")));
  }
}

TEST_P(HttpClientTest, RefusesHeadersThatWouldSmuggleAnother) {
  serve_reply({});

  const auto reply = client().send_and_wait(
      {.url = server_->url("/x"), .headers = {"A: 1\r\nB: 2"}}, {});

  expect_error(reply, ErrorCode::kInvalidArgument, "line break");
  EXPECT_EQ(server_->requests(), 0u);
}

TEST_P(HttpClientTest, KeepsConnectionsForRequestsThatFollow) {
  serve_reply({.body = "x"});

  for (int i = 0; i < 50; ++i) ASSERT_TRUE(get("/x"));

  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(metrics_.value(Metric::kStoreConnections), 1);
}

TEST_P(HttpClientTest, KeepsTheConnectionAfterAHeadWhoseReplyTellsALength) {
  serve(serve_objects({{"x", "0123456789"}}));

  for (int i = 0; i < 3; ++i) {
    const auto head = client().send_and_wait(
        {.method = "HEAD", .url = server_->url("/x")}, {});
    ASSERT_TRUE(head) << head.error().message();
    EXPECT_EQ(head->header("content-length"), "10");
    EXPECT_EQ(head->body, "");
    EXPECT_EQ(get("/x")->body, "0123456789");
  }
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_P(HttpClientTest, SurvivesConnectionsThatTheServerClosesWhileIdle) {
  serve_reply({.body = "x", .ending = ServerEnding::kClosed});

  for (int i = 0; i < 20; ++i) {
    const auto reply = get("/x");
    ASSERT_TRUE(reply) << reply.error().message();
    while (server_->open_connections() != 0) std::this_thread::yield();
  }

  EXPECT_EQ(server_->requests(), 20u);
}

TEST_P(HttpClientTest, CancelsBeforeAndDuringARequest) {
  serve_reply({.body = std::string(1000, 'x'),
               .ending = ServerEnding::kStall,
               .sent_bytes = 10});
  std::stop_source before;
  before.request_stop();
  std::stop_source during;
  std::string place(1000, '#');
  std::latch answered(1);
  std::atomic<int> answers = 0;

  expect_error(get("/x", before.get_token()), ErrorCode::kCancelled,
               "cancelled");
  client().send({.url = server_->url("/x"), .into = bytes_of(place)},
                during.get_token(), [&](const Result<HttpReply>& reply) {
                  EXPECT_FALSE(reply);
                  EXPECT_EQ(reply.error().code(), ErrorCode::kCancelled);
                  ++answers;
                  answered.count_down();
                });
  while (server_->requests() == 0) std::this_thread::yield();
  during.request_stop();
  answered.wait();

  EXPECT_EQ(answers, 1);
}

TEST_P(HttpClientTest, AnswersAllThatIsInFlightWhenItIsClosed) {
  serve_reply({.body = "never sent", .ending = ServerEnding::kStall});
  constexpr int kRequests = 20;
  std::atomic<int> cancelled = 0;
  std::atomic<int> others = 0;
  for (int i = 0; i < kRequests; ++i) {
    client().send({.url = server_->url("/x")}, {},
                  [&](const Result<HttpReply>& reply) {
                    const bool is_cancelled =
                        !reply && reply.error().code() == ErrorCode::kCancelled;
                    ++(is_cancelled ? cancelled : others);
                  });
  }

  client_.reset();

  EXPECT_EQ(cancelled, kRequests);
  EXPECT_EQ(others, 0);
}

TEST_P(HttpClientTest, RefusesToSendFromADoneThatRunsWhileItCloses) {
  serve_reply({.body = "never sent", .ending = ServerEnding::kStall});
  std::atomic<int> refused = 0;
  HttpClient& open = client();
  open.send({.url = server_->url("/x")}, {}, [&](const Result<HttpReply>&) {
    open.send({.url = server_->url("/y")}, {}, [&](const Result<HttpReply>& r) {
      if (!r && r.error().code() == ErrorCode::kCancelled) ++refused;
    });
  });

  client_.reset();

  EXPECT_EQ(refused, 1);
}

TEST_P(HttpClientTest, CarriesManyRequestsAtOnce) {
  options_.max_in_flight = 64;
  serve([](const ServerRequest& request) {
    return ServerReply{.body = "reply to " + request.target};
  });
  constexpr int kLanes = 64;
  constexpr int kEach = 30;
  std::atomic<int> wrong = 0;
  std::latch finished(kLanes);
  std::vector<std::function<void(int)>> lanes(kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes[lane] = [&, lane](int i) {
      if (i == kEach) return finished.count_down();
      const std::string target = fmt::format("/{}/{}", lane, i);
      client().send({.url = server_->url(target)}, {},
                    [&, lane, i, target](const Result<HttpReply>& reply) {
                      if (!reply || reply->body != "reply to " + target) {
                        ++wrong;
                      }
                      lanes[lane](i + 1);
                    });
    };
  }

  for (auto& lane : lanes) lane(0);
  finished.wait();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server_->requests(), static_cast<std::size_t>(kLanes * kEach));
  // One for each lane, and a few where threads were unevenly loaded.
  EXPECT_LE(server_->connections(), 2u * kLanes);
}

TEST_P(HttpClientTest, ResolvesNames) {
  serve_reply({.body = "x"});

  const auto reply = client().send_and_wait(
      {.url = fmt::format("http://localhost:{}/x", server_->port())}, {});

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->body, "x");
}

TEST_P(HttpClientTest, NamesTheHostThatDoesNotExist) {
  const auto reply =
      client().send_and_wait({.url = "http://no-such-host.invalid/x"}, {});

  expect_error(reply, ErrorCode::kUnavailable, "no-such-host.invalid");
}

TEST_P(HttpClientTest, ReadsAChunkedBodyIntoItsPlace) {
  serve_reply({.raw =
                   "HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\nTrailer: t\r\n\r\n"});
  std::string place(10, '#');

  for (int i = 0; i < 2; ++i) {
    const auto reply = get_into(place);

    ASSERT_TRUE(reply) << reply.error().message();
    EXPECT_EQ(place, "0123456789");
  }
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_P(HttpClientTest, ReadsABodyThatEndsWithTheConnection) {
  serve_reply({.ending = ServerEnding::kClosed,
               .raw = "HTTP/1.1 200 OK\r\n\r\n0123456789"});
  std::string place(10, '#');

  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(get_into(place));
    EXPECT_EQ(place, "0123456789");
  }
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_P(HttpClientTest, ReadsReplyThatComesByteByByte) {
  serve_reply({.raw = "HTTP/1.1 100 Continue\r\nNot: kept\r\n\r\n"
                      "HTTP/1.1 206 Partial\r\nContent-Length: 10\r\n"
                      "ETag: \"e\"\r\n\r\n0123456789",
               .raw_piece_bytes = 1});
  std::string place(10, '#');

  const auto reply = get_into(place);

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(place, "0123456789");
  EXPECT_EQ(reply->status, 206);
  EXPECT_EQ(reply->header("etag"), "\"e\"");
  EXPECT_EQ(reply->header("not"), "");
}

TEST_P(HttpClientTest, NeverTakesWhatFollowsAReplyForTheNextOne) {
  serve([](const ServerRequest& request) {
    std::string reply = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" +
                        std::to_string(request.nth);
    if (request.nth == 0)
      reply += "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nX";
    return ServerReply{.raw = reply};
  });

  for (const char* expected : {"0", "1", "2"}) {
    const auto reply = get("/x");
    ASSERT_TRUE(reply) << reply.error().message();
    EXPECT_EQ(reply->body, expected);
  }
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_P(HttpClientTest, LooksAtAKeptConnectionBeforeItUsesIt) {
  options_.io_threads = 1;
  serve([&](const ServerRequest& request) -> ServerReply {
    const std::string reply = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    if (request.nth != 0) return {.raw = reply + "2"};
    return {.raw = reply + "1",
            .steps = {{.bytes = reply + "X",
                       .pause = std::chrono::milliseconds(50)}}};
  });
  std::string second;
  std::latch answered(1);

  client().send({.url = server_->url("/1")}, {}, [&](const auto& first) {
    EXPECT_TRUE(first);
    // Meanwhile the I/O thread does not hear of the reply that nobody asked
    // for; then it has both that and a request.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    client().send({.url = server_->url("/2")}, {}, [&](const auto& reply) {
      second = reply ? reply->body : reply.error().message();
      answered.count_down();
    });
  });
  answered.wait();

  EXPECT_EQ(second, "2");
}

TEST_P(HttpClientTest, RefusesWhatIsNoReply) {
  const std::string endless(200'000, 'h');
  for (const std::string& raw :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: "
                    "99999999999999999999999\r\n\r\n"),
        std::string("HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "zz\r\n"),
        "HTTP/1.1 200 OK\r\nX: " + endless}) {
    serve_reply({.ending = ServerEnding::kClosed, .raw = raw});
    std::string place(10, '#');

    const auto reply = get_into(place);

    ASSERT_FALSE(reply) << raw.substr(0, 60);
    EXPECT_THAT(reply.error().message(), HasSubstr(server_->url("/x")));
    if (GetParam() == Carrier::kDirect) {
      EXPECT_EQ(reply.error().code(), ErrorCode::kUnavailable)
          << reply.error().message();
    }
    EXPECT_EQ(place, "##########");
  }
}

TEST_P(HttpClientTest, ReadsAnObjectLargerThanAnyBuffer) {
  std::string body(5'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 2654435761U >> 13);
  }
  serve_reply({.body = body});
  std::string place(body.size(), '#');

  const auto reply = get_into(place);

  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_TRUE(place == body);
}

TEST_P(HttpClientTest, SaysSoWhenUsedInAForkedChild) {
  serve_reply({.body = "x"});
  ASSERT_TRUE(get("/x"));

  const pid_t child = fork();
  if (child == 0) {
    ::alarm(60);
    const auto reply = client_->send_and_wait({.url = server_->url("/x")}, {});
    const bool is_clear =
        !reply && reply.error().code() == ErrorCode::kInvalidArgument &&
        reply.error().message().find("fork") != std::string::npos;
    client_.reset();  // Must not hang.
    _exit(is_clear ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);

  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(get("/x"));
}

}  // namespace
}  // namespace leat::testing
