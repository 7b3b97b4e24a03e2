#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "leat/agent/testing/sample_node.h"
#include "leat/agent/view_json.h"
#include "leat/agent/view_server.h"
#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"
#include "leat/cli/top_screen.h"
#include "leat/serve/testing/raw_http.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Outcome = testing::CommandOutcome;

Outcome top(std::vector<std::string> words) {
  words.insert(words.begin(), "top");
  return testing::run_commands({&kTopCommand}, std::move(words));
}

std::unique_ptr<ViewServer> serve_view(const NodeView& view) {
  auto server = open_view_server({.port = 0}, [view] { return view; });
  EXPECT_TRUE(server) << server.error().message();
  return *std::move(server);
}

TEST(TopCommandTest, ShowsTheNodeOnceWhereThereIsNoTerminal) {
  const NodeView view = testing::sample_node(3, 60);
  const auto server = serve_view(view);

  const Outcome outcome = top({"--url", server->url() + "/"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_EQ(outcome.out, top_screen(view, {}));
}

TEST(TopCommandTest, PrintsTheObjectForPrograms) {
  const NodeView view = testing::sample_node(3, 60);
  const auto server = serve_view(view);

  const Outcome outcome = top({"--url", server->url(), "--json"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_EQ(outcome.out, view_json(view) + "\n");
}

TEST(TopCommandTest, WritesNothingThatWouldCommandATerminal) {
  testing::FakeService liar([](const std::string&) {
    Reply reply;
    reply.body =
        "{\"format\": 1, \"node\": {\"name\": \"\\u001b[2J\xC2\x9B"
        "31m\"}, \"jobs\": [{\"name\": \"\\u001b]0;x\\u0007\"}]}";
    return reply;
  });
  const auto server = testing::serve(liar);
  const std::string url = "http://127.0.0.1:" + std::to_string(server->port());

  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--url", url}, {"--url", url, "--json"}}) {
    const Outcome outcome = top(words);

    EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\uFFFD[2J\uFFFD31m"));
    EXPECT_EQ(outcome.out.find_first_of("\x1b\x07"), std::string::npos);
    EXPECT_EQ(outcome.out.find("\xC2\x9B"), std::string::npos);
  }
}

TEST(TopCommandTest, SaysWhereItAskedAndWhatToDo) {
  const Outcome outcome = top({"--url", "http://127.0.0.1:1"});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_THAT(outcome.err,
              HasSubstr("asking the agent at http://127.0.0.1:1 "
                        "(is one running with --port? leat top --url says "
                        "where): "));
}

TEST(TopCommandTest, APasswordOfTheUrlIsNotRepeated) {
  const Outcome outcome = top({"--url", "http://u:secret@127.0.0.1:1"});

  EXPECT_EQ(outcome.code, ExitCode::kWrongUsage);
  EXPECT_THAT(outcome.err, HasSubstr("the agent at http://127.0.0.1:1 "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("secret")));
}

TEST(TopCommandTest, RefusesWhatIsNoAgent) {
  testing::FakeService other([](const std::string& what) {
    Reply reply;
    reply.status = what.starts_with("GET /api/node") ? 404 : 200;
    return reply;
  });
  const auto server = testing::serve(other);

  const Outcome outcome =
      top({"--url", "http://127.0.0.1:" + std::to_string(server->port())});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("HTTP 404"));
  EXPECT_EQ(top({"--url", "127.0.0.1:5328"}).code, ExitCode::kWrongUsage);
}

}  // namespace
}  // namespace leat
