// A program with a counter of its own is a program like any other: its loaders
// tell it, and an agent shows it in its view, as JSON and in /metrics.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "leat/agent/agent.h"
#include "leat/agent/exposition.h"
#include "leat/agent/view_json.h"
#include "leat/agent/wire/messages.h"
#include "leat/engine/loader/loader.h"
#include "tests/counter/job_counters.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

using counters::kStoreSeconds;
using nlohmann::json;
using ::testing::HasSubstr;

TEST(CounterOfOurOwnTest, IsOnTheWire) {
  const std::string line =
      line_of(WireRates{.totals = {{&kStoreSeconds, 2.5}}});
  EXPECT_EQ(json::parse(line)["rates"]["store_seconds"], 2.5);

  const auto read = parse_loader_line(line.substr(0, line.size() - 1));

  ASSERT_TRUE(read && read->rates);
  EXPECT_EQ(read->rates->totals.at(&kStoreSeconds), 2.5);
  EXPECT_FALSE(
      json::parse(line_of(WireRates{}))["rates"].contains("store_seconds"))
      << "older loaders do not tell it";
}

TEST(CounterOfOurOwnTest, IsShownOfAJobThatReads) {
  World world;
  AgentOptions options;
  options.socket = (world.root() / "agent.sock").string();
  options.heeds_other_programs = false;
  const auto agent = must(open_agent(options));
  const auto loader = must(Loader::open(
      must(world.open("file://" + world.folder())), usual_options(),
      fake_env({{"LEAT_AGENT", options.socket}})));
  (void)must(run_epoch(*loader));

  NodeView view;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  do {  // A loader reports once a second.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    view = agent->view();
  } while ((view.jobs.empty() ||
            total_of(view.jobs[0].totals, kStoreSeconds) == 0) &&
           std::chrono::steady_clock::now() < end);

  ASSERT_EQ(view.jobs.size(), 1u);
  const double seconds = total_of(view.jobs[0].totals, kStoreSeconds);
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds,
            std::chrono::duration<double>(loader->totals().read_time).count());
  const std::string told = view_json(view);
  EXPECT_EQ(json::parse(told)["jobs"][0]["ledger"]["store_seconds"], seconds);
  EXPECT_EQ(total_of(must(read_view_json(told)).jobs[0].totals, kStoreSeconds),
            seconds);
  EXPECT_THAT(exposition(view),
              HasSubstr("# HELP leat_agent_store_seconds_total Time of"));
  EXPECT_THAT(exposition(view),
              HasSubstr("leat_agent_store_seconds_total{job=\"1\"} "));
  EXPECT_THAT(
      agent_metrics_page(),
      HasSubstr("| `leat_agent_store_seconds_total` | counter | job | "));
}

}  // namespace
}  // namespace leat
