// leat top    What the jobs of this node do: asks the node agent, once a
// second.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "leat/agent/public_text.h"
#include "leat/agent/view_json.h"
#include "leat/agent/view_server.h"
#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/cli/commands.h"
#include "leat/cli/top_screen.h"
#include "leat/store/http/http_client.h"

namespace leat {
namespace {

struct TopWords {
  std::string url = fmt::format("http://127.0.0.1:{}", kViewPort);
  bool once = false;
  bool json = false;
};

constexpr auto kEvery = std::chrono::seconds(1);
/// The screen shows no history: none is later than this.
constexpr std::string_view kWithoutHistory = "?points_after=1e18";
constexpr std::size_t kMostBytes = 64 << 20;

class AgentClient {
 public:
  explicit AgentClient(std::string url)
      : url_(std::move(url)),
        // An agent is near: no proxy of the environment lies in between.
        http_(open_http_client({.io_threads = 1,
                                .max_in_flight = 1,
                                .connect_timeout = std::chrono::seconds(5),
                                .stall_timeout = std::chrono::seconds(10),
                                .may_use_proxy = false},
                               nullptr)) {}

  /// `query` is of /api/node.
  Result<NodeView> ask(std::string_view query, const std::stop_token& stop) {
    auto view = answer(query, stop);
    if (view) return view;
    return std::move(view).error().while_doing(fmt::format(
        "asking the agent at {} (is one running with --port? leat top --url "
        "says where)",
        public_text(url_)));
  }

 private:
  Result<NodeView> answer(std::string_view query, const std::stop_token& stop) {
    LEAT_TRY(
        const HttpReply reply,
        http_->send_and_wait({.url = fmt::format("{}/api/node{}", url_, query),
                              .most_body_bytes = kMostBytes},
                             stop));
    if (reply.status != 200) {
      return unavailable("HTTP {}", reply.status);
    }
    return read_view_json(reply.body);
  }

  const std::string url_;
  const std::unique_ptr<HttpClient> http_;
};

/// A screen of the terminal's own, given back at the end.
class OwnScreen {
 public:
  explicit OwnScreen(std::ostream& out) : out_(out) {
    out_ << "\x1b[?1049h\x1b[?25l";
  }
  ~OwnScreen() { out_ << "\x1b[?25h\x1b[?1049l" << std::flush; }

  void draw(std::string_view text) {
    out_ << "\x1b[H";
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      out_ << text.substr(0, end) << "\x1b[K";
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!text.empty())
        out_ << "\r\n";  // Not after the last: it would scroll.
    }
    out_ << "\x1b[J" << std::flush;
  }

 private:
  std::ostream& out_;
};

ScreenSize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
      size.ws_row == 0) {
    return {.columns = 80, .rows = 24};
  }
  return {.columns = size.ws_col, .rows = size.ws_row};
}

/// False if `stop` fired first.
bool wait(const std::stop_token& stop) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  never.wait_for(lock, stop, kEvery, [] { return false; });
  return !stop.stop_requested();
}

Result<void> follow(AgentClient& agent, NodeView view, std::ostream& out,
                    const std::stop_token& stop) {
  OwnScreen screen(out);
  std::string trouble;
  do {
    ScreenSize size = size_of_terminal();
    if (!trouble.empty() && size.rows > 1) --size.rows;
    screen.draw(trouble + top_screen(view, size));
    if (!wait(stop)) break;
    auto next = agent.ask(kWithoutHistory, stop);
    trouble.clear();
    if (next) {
      view = *std::move(next);
    } else if (!stop.stop_requested()) {
      trouble = "The agent does not answer: what follows is old.\n";
    }
  } while (!stop.stop_requested());
  return {};
}

Result<void> run_top(const TopWords& words, CommandContext& context) {
  std::string url = words.url;
  while (url.ends_with('/')) url.pop_back();
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return invalid(
        "--url reads the address of an agent's page, such as "
        "http://127.0.0.1:5328");
  }
  AgentClient agent(std::move(url));
  LEAT_TRY(NodeView view,
           agent.ask(words.json ? "" : kWithoutHistory, context.stop));
  const bool is_terminal =
      &context.out == &std::cout && ::isatty(STDOUT_FILENO) != 0;
  if (words.json) {
    context.out << view_json(view) << '\n';
  } else if (words.once || !is_terminal) {
    context.out << top_screen(view, {});
  } else {
    return follow(agent, std::move(view), context.out, context.stop);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_top(CLI::App& app) {
  auto words = std::make_shared<TopWords>();
  app.add_option("--url", words->url, "the address of the agent's page")
      ->capture_default_str();
  app.add_flag(
      "--once", words->once,
      "show it once and end; the default if the output is no terminal");
  app.add_flag("--json", words->json,
               "print the agent's view as one object, and end");
  app.footer(
      "Example:\n"
      "  leat top\n"
      "  leat top --json | jq '.jobs[] | {name, wait_fraction}'");
  return [words](CommandContext& context) { return run_top(*words, context); };
}

}  // namespace

const Command kTopCommand{
    .name = "top",
    .summary = "show the jobs of this node, as its agent sees them",
    .add = add_top};

}  // namespace leat
