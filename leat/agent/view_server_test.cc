#include "leat/agent/view_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "leat/agent/exposition.h"
#include "leat/agent/testing/sample_node.h"
#include "leat/agent/view_json.h"
#include "leat/serve/testing/raw_http.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ViewServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto trace = [](const std::string& job) -> std::optional<JobTrace> {
      if (job != "job-1") return std::nullopt;
      return testing::sample_trace(30);
    };
    auto opened = open_view_server(
        {.port = 0, .names = {"Node-7"}},
        [this] { return testing::sample_node(2, ++seconds_); }, trace);
    ASSERT_TRUE(opened) << opened.error().message();
    server_ = *std::move(opened);
  }

  /// Head and body of the reply.
  std::pair<std::string, std::string> ask(const std::string& what,
                                          const std::string& host) {
    testing::RawClient client(server_->port());
    client.send(what + " HTTP/1.1\r\nHost: " + host +
                "\r\nConnection: close\r\n\r\n");
    const std::string all = client.read_all();
    const std::size_t end = std::min(all.find("\r\n\r\n"), all.size());
    return {all.substr(0, end), all.substr(std::min(end + 4, all.size()))};
  }
  std::pair<std::string, std::string> ask(const std::string& what) {
    return ask(what, "127.0.0.1");
  }

  std::atomic<int> seconds_ = 0;
  std::unique_ptr<ViewServer> server_;
};

TEST_F(ViewServerTest, AnswersWithTheNodeAsItIsNow) {
  const auto [head, body] = ask("GET /api/node");

  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(body, view_json(testing::sample_node(2, 1)));
  EXPECT_EQ(ask("GET /api/node").second, view_json(testing::sample_node(2, 2)));
}

TEST_F(ViewServerTest, LeavesOutWhatTheQuerySays) {
  seconds_ = 29;
  const auto body =
      ask("GET /api/node?points_after=1800000028.5&decisions_after=2").second;

  EXPECT_EQ(body, view_json(testing::sample_node(2, 30),
                            {.points_after = testing::kSampleBegin + 28.5,
                             .decisions_after = 2}));
}

TEST_F(ViewServerTest, AnswersWithTheTraceOfAJob) {
  const auto [head, body] = ask("GET /api/trace?job=job-1");

  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_EQ(body, trace_json("job-1", testing::sample_trace(30)));
  const auto told = nlohmann::json::parse(body);
  EXPECT_EQ(told.at("job"), "job-1");
  EXPECT_EQ(told.at("trace").at("steps").size(), JobTrace::kMostSteps);
  EXPECT_THAT(ask("GET /api/trace?job=job-9").first,
              StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask("GET /api/trace?jobs=1").first, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask("GET /api/trace").first, StartsWith("HTTP/1.1 400"));
}

TEST_F(ViewServerTest, RefusesAQueryThatItCannotRead) {
  for (const char* query :
       {"points_after=", "points_after", "points_after=1x", "points_after=inf",
        "points_after=nan", "decisions_after=-1", "decisions_after=1.5",
        "decisions_after=99999999999999999999", "a=1", "=", "&",
        "points_after=1&&decisions_after=1"}) {
    const auto [head, body] = ask(std::string("GET /api/node?") + query);

    EXPECT_THAT(head, StartsWith("HTTP/1.1 400 ")) << query;
    EXPECT_THAT(body, HasSubstr("points_after=UNIX_TIME")) << query;
  }
}

TEST_F(ViewServerTest, AnswersPrometheus) {
  const auto [head, body] = ask("GET /metrics");

  EXPECT_THAT(
      head,
      HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_EQ(body, exposition(testing::sample_node(2, 1)));
}

TEST_F(ViewServerTest, ServesThePageAsItsFilesAre) {
  for (const auto& [target, file, type] :
       std::vector<std::array<std::string, 3>>{
           {"/", "index.html", "text/html; charset=utf-8"},
           {"/assets/app.js", "assets/app.js",
            "text/javascript; charset=utf-8"},
           {"/assets/app.css", "assets/app.css", "text/css; charset=utf-8"},
           {"/assets/icon.svg", "assets/icon.svg", "image/svg+xml"}}) {
    std::ifstream in(std::string(LEAT_PAGE_FOLDER "/") + file);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    ASSERT_GT(text.size(), 100u) << file;

    const auto [head, body] = ask("GET " + target);

    EXPECT_THAT(head, HasSubstr("\r\nContent-Type: " + type + "\r\n"));
    EXPECT_EQ(body, text) << file;
  }
  EXPECT_EQ(seconds_, 0);
}

TEST_F(ViewServerTest, GivesNothingToOtherPages) {
  for (const char* target :
       {"/", "/assets/app.js", "/api/node", "/metrics", "/nothing"}) {
    const auto head = ask(std::string("GET ") + target).first;

    EXPECT_THAT(head, HasSubstr("\r\nCache-Control: no-store\r\n"));
    EXPECT_THAT(head, HasSubstr("\r\nContent-Security-Policy: default-src "
                                "'none'; script-src 'self'; "));
    EXPECT_THAT(head, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(head, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(head,
                HasSubstr("\r\nCross-Origin-Resource-Policy: same-origin\r\n"));
    EXPECT_THAT(head, Not(HasSubstr("Access-Control-Allow")));
    EXPECT_THAT(head, Not(HasSubstr("unsafe")));
    EXPECT_THAT(head, Not(HasSubstr("http:")));
  }
}

TEST_F(ViewServerTest, AnswersOnlyToItsOwnNames) {
  for (const char* host : {"127.0.0.1", "localhost:5328", "[::1]:80", "NODE-7",
                           "node-7:1", "10.1.2.3"}) {
    EXPECT_THAT(ask("GET /api/node", host).first, StartsWith("HTTP/1.1 200"))
        << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:5328", "127.0.0.1.evil.example", "node-8",
        "localhost.evil.example", "", "[evil]", "[::1", "node-7:x",
        "127.0.0.1:", "1.2.3"}) {
    const auto [head, body] = ask("GET /api/node", host);
    EXPECT_THAT(head, StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(body, Not(HasSubstr("job-1"))) << host;
  }
}

TEST_F(ViewServerTest, SendsOnlyTheHeadOfWhatHeadAsks) {
  const auto [head, body] = ask("HEAD /api/node");

  EXPECT_EQ(body, "");
  EXPECT_THAT(
      head,
      HasSubstr("Content-Length: " +
                std::to_string(view_json(testing::sample_node(2, 1)).size())));
}

TEST_F(ViewServerTest, LetsNothingBeSet) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const auto head = ask(std::string(method) + " /api/node").first;
    EXPECT_THAT(head, StartsWith("HTTP/1.1 405")) << method;
    EXPECT_THAT(head, HasSubstr("\r\nAllow: GET, HEAD")) << method;
  }
  EXPECT_EQ(seconds_, 0);
}

TEST_F(ViewServerTest, HasNothingElsewhere) {
  for (const char* target :
       {"/api", "/api/node/", "/metrics/x", "/..", "//", "/assets/",
        "/assets/../api/node", "/%2e%2e/etc/passwd"}) {
    EXPECT_THAT(ask(std::string("GET ") + target).first,
                StartsWith("HTTP/1.1 404"))
        << target;
  }
}

TEST_F(ViewServerTest, SaysItsAddress) {
  EXPECT_EQ(server_->url(),
            "http://127.0.0.1:" + std::to_string(server_->port()));
}

TEST(OpenViewServerTest, SaysWhatIsWrongWithItsAddress) {
  const auto opened =
      open_view_server({.host = "nowhere"}, [] { return NodeView(); });

  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
