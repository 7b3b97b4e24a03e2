// `leat plan --break-even`, and [[break_even]] in a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

using Outcome = testing::CommandOutcome;

class BreakEvenCommandTest : public testing::CommandTest {
 protected:
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "plan");
    return CommandTest::run({&kPlanCommand}, std::move(words));
  }

  Outcome run_file(const std::string& text) const {
    return run({"--simulate", put("file.toml", text), "--json"});
  }
};

constexpr const char* kWays = R"(
[[simulation]]
name = "no cache"
samples = 1000
global_batch_size = 100
epochs = 2
times = {compute = "1s", get = "1s", max_in_flight = 50, prefetch_steps = 0}

[[break_even]]
name = "two ways"
epochs = 4
billing = {get_per_1000 = 1, node_per_hour = 3600}

[[break_even.ways]]
name = "bucket"
simulation = "no cache"

[[break_even.ways]]
name = "copy"
copy = {seconds = "30s", gets = 1000}
epochs = [{seconds = "10s"}]
disk = "1GB"
)";

TEST_F(BreakEvenCommandTest, AFileMayMixSimulatedAndMeasuredWays) {
  const Outcome outcome = run_file(kWays);

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto told = nlohmann::json::parse(outcome.out)["break_even"][0];
  // A step waits two rounds of GETs, a second each, and computes for one.
  EXPECT_DOUBLE_EQ(told["ways"][0]["dollars"]["hours"], 4 * 10 * 3);
  EXPECT_DOUBLE_EQ(told["ways"][0]["dollars"]["gets"], 4);
  EXPECT_DOUBLE_EQ(told["ways"][0]["dollars"]["waiting"], 4 * 10 * 2);
  EXPECT_DOUBLE_EQ(told["ways"][1]["dollars"]["total"], 30 + 1 + 4 * 10);
  EXPECT_EQ(told["cheapest"], "copy");
  // 31 dollars an epoch against 31 once and 10: in the first, the bucket.
  EXPECT_EQ(told["by_epochs"][0]["way"], "bucket");
  EXPECT_EQ(told["by_epochs"][1]["from"], 2);
}

TEST_F(BreakEvenCommandTest, WaysThatCannotBeMeantAreRefused) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kWays;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const auto& [text, why] :
       {std::pair{with("simulation = \"no cache\"", "simulation = \"x\""),
                  "is no [[simulation]]"},
        std::pair{with("times = {", "#"), "has no times"},
        std::pair{with("name = \"copy\"", "name = \"bucket\""),
                  "another \"bucket\""},
        std::pair{with("epochs = [{seconds = \"10s\"}]", ""),
                  "give one of them"},
        std::pair{with("epochs = [{seconds = \"10s\"}]",
                       "epochs = [{seconds = \"10s\", wait = \"11s\"}]"),
                  "more than the seconds"},
        std::pair{
            with("billing = {get_per_1000 = 1, node_per_hour = 3600}", ""),
            "billing is missing"},
        std::pair{with("epochs = 4", "epochs = 4\nnodes = 2"),
                  "another number of nodes"}}) {
    const Outcome outcome = run_file(text);

    EXPECT_EQ(outcome.code, ExitCode::kWrongUsage) << why;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }
}

TEST_F(BreakEvenCommandTest, ADatasetIsPricedFromBucketCachesAndACopy) {
  for (int i = 0; i < 40; ++i) {
    put("data/a/" + std::to_string(i) + ".jpg", std::string(1000, 'x'));
  }
  const std::string prices = put(
      "prices.toml",
      "[mine]\nget_per_1000 = 1\nmemory_per_gb_hour = 2\ndisk_per_gb_month = "
      "730\n");

  const Outcome outcome = run({path("data"),
                               "--json",
                               "--break-even",
                               "--provider",
                               "mine",
                               "--prices",
                               prices,
                               "--global-batch-size",
                               "4",
                               "--epochs",
                               "20",
                               "--ram",
                               "1GB",
                               "--step-time",
                               "36s",
                               "--latency",
                               "360ms",
                               "--max-in-flight",
                               "4",
                               "--node-per-hour",
                               "10"});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto told = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(told["ways"].size(), 3u);
  const auto dollars = [&](int way, const char* key) {
    return told["ways"][way]["dollars"][key].get<double>();
  };
  EXPECT_EQ(told["ways"][0]["name"], "bucket");
  EXPECT_NEAR(dollars(0, "gets"), 20 * 40 / 1000., 1e-9);
  EXPECT_EQ(told["ways"][1]["name"], "cache in memory");
  EXPECT_NEAR(dollars(1, "gets"), 40 / 1000., 1e-9);
  EXPECT_NEAR(dollars(1, "memory"), 20 * 0.1 * 2, 0.01);
  EXPECT_EQ(told["ways"][2]["name"], "copy on disk");
  EXPECT_NEAR(dollars(2, "hours"), (20 * 0.1 + 0.001) * 10, 1e-9);
  EXPECT_NEAR(dollars(2, "waiting"), 0.001 * 10, 1e-9);
  EXPECT_NEAR(dollars(2, "disk"), 40e-6 * (2 + 0.001), 1e-9);
}

}  // namespace
}  // namespace leat
