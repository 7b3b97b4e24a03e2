// serve_sample_node [JOBS]    Serves the page of a node that never was.
//
// Prints "listening on URL", then reads words from standard input, each on a
// line of its own, and ends with it:
//
//   at SECONDS    the node as it is so long after it began; it stays there
//   left SECONDS  the same, but the last job has gone, and the agent gives out
//                 no requests
//   uncached SECONDS  the same as at, but no job has a cache, and the last
//                 decision changes nothing
//   hostile       a node of words that are not what they seem
//   run SECONDS   so long after it began, and moving on with the clock
//
// It begins at 120 s.

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

#include "leat/agent/testing/sample_node.h"
#include "leat/agent/view_server.h"

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

int main(int argc, char** argv) {
  const std::size_t jobs = argc > 1 ? std::stoul(argv[1]) : 5;
  std::mutex mutex;
  std::function<leat::NodeView()> view = [jobs] {
    return leat::testing::sample_node(jobs, 120);
  };
  const auto see = [&] {
    const std::lock_guard lock(mutex);
    return view();
  };
  // The last job has not told of a step yet.
  const auto trace =
      [&](const std::string& job) -> std::optional<leat::JobTrace> {
    const leat::NodeView node = see();
    const auto found = std::ranges::find(node.jobs, job, &leat::JobView::id);
    if (found == node.jobs.end()) return std::nullopt;
    if (found + 1 == node.jobs.end()) return leat::JobTrace();
    return leat::testing::sample_trace(node.time_seconds -
                                       leat::testing::kSampleBegin);
  };
  const auto server = leat::open_view_server({.port = 0}, see, trace);
  if (!server) {
    std::cerr << server.error().message() << '\n';
    return 1;
  }
  std::cout << "listening on " << (*server)->url() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    double seconds = 0;
    words >> word >> seconds;
    const std::lock_guard lock(mutex);
    if (word == "at") {
      view = [=] { return leat::testing::sample_node(jobs, seconds); };
    } else if (word == "left") {
      view = [=] {
        leat::NodeView node = leat::testing::sample_node(jobs, seconds);
        node.jobs.pop_back();
        node.in_flight = 0;
        return node;
      };
    } else if (word == "uncached") {
      view = [=] { return leat::testing::uncached_node(jobs, seconds); };
    } else if (word == "hostile") {
      view = leat::testing::hostile_node;
    } else if (word == "run") {
      view = [jobs, seconds, begin = Clock::now()] {
        const std::chrono::duration<double> since = Clock::now() - begin;
        return leat::testing::sample_node(jobs, seconds + since.count());
      };
    } else {
      std::cerr << "no such word: " << word << '\n';
      return 2;
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}
