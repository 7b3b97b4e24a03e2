// `leat recommend` on a small report and lists of machines, right and wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

/// 100 ms of compute, 300 ms of preparation by 4 busy cores; 36,000 steps.
constexpr const char* kReport = R"({
  "leat_profile": 1, "cores": 4, "loader": "x", "accelerator": "A",
  "settings": {"nodes": 1, "nproc_per_node": 1},
  "parts": {"compute": {"seconds": 0.1}, "preparation": {"seconds": 0.3},
            "fetch": {"seconds": 0}},
  "supply_seconds": {"warm": 0.4, "cold": 0.4}, "supply_cpu_seconds": 1.6,
  "epoch_batches": 36000, "gradients": {"bytes": null, "buckets": null},
  "fetch_a_batch": {"gets": 1000, "lists": 0, "bytes": 10,
                    "latency_share": 0.9}})";

constexpr const char* kMachines = R"(
[billing]
provider = "s3"
[[machine]]
name = "few cores"
accelerator = "A"
speed = 1
cores = 4
dollars_per_hour = 1
most = 2
as_of = "2024-11"
source = "a page"
[[machine]]
name = "many cores"
accelerator = "A"
speed = 1
cores = 16
dollars_per_hour = 10
as_of = "2023-01"
source = "a page"
)";

using Outcome = testing::CommandOutcome;

class RecommendCommandTest : public testing::CommandTest {
 protected:
  Outcome run(const std::string& machines, std::vector<std::string> words = {},
              const std::string& report = kReport) const {
    words.insert(words.begin(), {"recommend", put("report", report),
                                 "--catalog", put("machines", machines)});
    return CommandTest::run({&kRecommendCommand}, std::move(words));
  }
};

TEST_F(RecommendCommandTest, TellsTheFrontTheChoiceAndWhetherSmallerIsBetter) {
  const Outcome done = run(kMachines);

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 x few cores: 4.00 h, 18.40 dollars"));
  EXPECT_THAT(done.out, HasSubstr("a smaller machine is better for the money"));
  EXPECT_THAT(done.out, HasSubstr("as measured on few cores; prices as of "
                                  "2023-01; 2024-11"));
  EXPECT_THAT(done.out, HasSubstr("Leat's own model"));
  EXPECT_THAT(done.out, HasSubstr("some machines are left out"));
}

TEST_F(RecommendCommandTest, WhatIsNearlyAsFastDoesNotTakeOneTimesAsLong) {
  std::string machines = kMachines;
  machines.replace(machines.find("cores = 16"), 10, "cores = 4.2");
  const Outcome done = run(machines);

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  EXPECT_THAT(done.out, HasSubstr("% longer"));
  EXPECT_THAT(done.out, Not(HasSubstr("1.0 times")));
}

TEST_F(RecommendCommandTest, KeepsToTheLimits) {
  const Outcome fast = run(kMachines, {"--hours", "2", "--json"});
  const Outcome none = run(kMachines, {"--money", "5"});

  ASSERT_EQ(fast.code, ExitCode::kDone) << fast.err;
  const Json told = Json::parse(fast.out);
  ASSERT_EQ(told["machines"].size(), 3u);
  EXPECT_FALSE(told["machines"][0]["is_choice"].get<bool>());
  EXPECT_TRUE(told["machines"][1]["hours"].is_null());
  EXPECT_TRUE(told["machines"][2]["is_choice"].get<bool>());
  EXPECT_NEAR(told["machines"][2]["hours"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(told["machines"][2]["dollars_of"]["gets"].get<double>(), 14.4,
              1e-9);
  EXPECT_THAT(none.out, HasSubstr("nothing is within the limit: the cheapest "
                                  "is 1 x few cores"));
}

TEST_F(RecommendCommandTest, GradientsLetSeveralMachinesBeJudged) {
  const Outcome done =
      run(kMachines, {"--gradient-bytes", "1e8", "--epochs", "2", "--json"});

  ASSERT_EQ(done.code, ExitCode::kDone) << done.err;
  const Json told = Json::parse(done.out);
  EXPECT_NEAR(told["machines"][0]["hours"].get<double>(), 8, 1e-9);
  EXPECT_NEAR(told["machines"][1]["hours"].get<double>(), 4, 1e-9);
}

TEST_F(RecommendCommandTest, WrongListsAndReportsAreRefusedByName) {
  const auto refusal = [&](const std::string& machines,
                           std::vector<std::string> words = {},
                           const std::string& report = kReport) {
    const Outcome done = run(machines, std::move(words), report);
    EXPECT_EQ(done.code, ExitCode::kWrongUsage);
    return done.err;
  };
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kMachines;
    return text.replace(text.find(from), from.size(), to);
  };

  EXPECT_THAT(refusal(""), HasSubstr("has no [[machine]]"));
  EXPECT_THAT(refusal(with("many cores", "few cores")), HasSubstr("machine 2"));
  EXPECT_THAT(refusal(with("speed = 1", "speed = 0")),
              HasSubstr("speed must be there"));
  EXPECT_THAT(refusal(with("dollars_per_hour = 10", "")),
              HasSubstr("dollars_per_hour is missing"));
  EXPECT_THAT(refusal(with("as_of = \"2024-11\"", "")),
              HasSubstr("as_of is missing"));
  for (const char* name : {"\"\"", "\"a\\u001b[31m\"", "\"a\\nb\""}) {
    EXPECT_THAT(refusal(with("\"few cores\"", name)),
                HasSubstr("name must be some text, on one line"));
  }
  EXPECT_THAT(refusal(with("most = 2", "mots = 2")),
              HasSubstr("mots is unknown"));
  EXPECT_THAT(refusal(kMachines, {"--on", "neither"}),
              HasSubstr("no such machine"));
  EXPECT_THAT(refusal(kMachines, {"--hours", "1", "--money", "1"}),
              HasSubstr("not both"));
  std::string other = kReport;
  other.replace(other.find("\"A\""), 3, "\"B\"");
  EXPECT_THAT(refusal(kMachines, {}, other), HasSubstr("made on \"B\""));
  std::string endless = kReport;
  endless.replace(endless.find("36000"), 5, "null");
  EXPECT_THAT(refusal(kMachines, {}, endless), HasSubstr("by --steps"));
}

TEST_F(RecommendCommandTest, TheExampleIsRead) {
  std::ifstream file(LEAT_EXAMPLES_FOLDER "/machines.toml");
  std::ostringstream machines;
  machines << file.rdbuf();

  const Outcome done =
      run(machines.str(), {"--on", "g5.xlarge", "--gradient-bytes", "1e8"});

  EXPECT_EQ(done.code, ExitCode::kDone) << done.err;
}

}  // namespace
}  // namespace leat
