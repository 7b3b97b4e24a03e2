// `leat plan` on a file of jobs and on a folder of this machine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/plan_report.h"
#include "leat/cli/testing/command_test.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

using Outcome = testing::CommandOutcome;

class PlanCommandTest : public testing::CommandTest {
 protected:
  Outcome run(std::vector<std::string> words, std::stop_token stop = {}) const {
    words.insert(words.begin(), "plan");
    return CommandTest::run({&kPlanCommand}, std::move(words), {},
                            std::move(stop));
  }
};

constexpr const char* kJobs = R"(
[[simulation]]
name = "half in RAM"
samples = 1000
sample_bytes = 100
global_batch_size = 50
epochs = 3
tiers = [{policy = "never_evict", capacity = 50000}]
times = {compute = "100ms", get = "50ms"}
billing = {get_per_1000 = 1, gets_per_second = 10}

[[deli]]
name = "50/50"
samples = 400
nodes = 2
epochs = 1
fetch_size = 50
queue_threshold = 50
items = 100
batch_size = 50
compute = "1s"
get = "20ms"
hit = "0"
fetch = "90ms"
fetch_sample = "0"

[[solar]]
name = "two nodes"
samples = 400
global_batch_size = 40
nodes = 2
epochs = 2
items = 200
dealing = "unequal"
)";

TEST_F(PlanCommandTest, RunsTheJobsOfAFile) {
  const std::string file = put("jobs.toml", kJobs);

  const Outcome outcome = run({"--simulate", file, "--json"});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto told = nlohmann::json::parse(outcome.out);
  const auto& total = told["simulations"][0]["total"];
  EXPECT_EQ(total["gets"], 1000 + 500 + 500);
  EXPECT_EQ(total["tier_hits"][0], 1000);
  EXPECT_DOUBLE_EQ(total["hit_ratio_later"], 0.5);
  EXPECT_DOUBLE_EQ(total["dollars"]["gets"], 2);
  EXPECT_TRUE(total["is_past_limit"]);
  const auto& deli = told["deli"][0]["epochs"][0];
  EXPECT_EQ(deli["reads"], 200);
  EXPECT_EQ(deli["misses"], 5);  // 90 ms of the first fetch.
  const auto& solar = told["solar"][0]["epochs"];
  EXPECT_EQ(solar[0]["loads"], 400);
  EXPECT_EQ(solar[1]["loads"], 0);  // The two hold all of it.
  EXPECT_EQ(solar[1]["epoch"], 1);
}

TEST_F(PlanCommandTest, PrintsATableForPeople) {
  const Outcome outcome = run({"--simulate", put("jobs.toml", kJobs)});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("half in RAM"));
  EXPECT_THAT(outcome.out, HasSubstr("50.0 %"));
  EXPECT_THAT(outcome.out, HasSubstr("2.5 % missed"));
  EXPECT_THAT(outcome.out, HasSubstr("two nodes  400 loads  0 loads"));
}

TEST_F(PlanCommandTest, ComparesCachesForADataset) {
  for (int i = 0; i < 40; ++i) {
    put("data/a/" + std::to_string(i) + ".jpg", std::string(1000, 'x'));
  }

  const Outcome outcome =
      run({path("data"), "--json", "--global-batch-size", "4", "--nodes", "2",
           "--ram", "40KB", "--epochs", "20"});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto told = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(told["samples"], 40);
  EXPECT_EQ(told["bytes"], 40000);
  EXPECT_EQ(told["caches"][0]["name"], "no cache");
  EXPECT_EQ(told["caches"][0]["gets"], 20 * 40);
  bool has_belady = false;
  for (const auto& cache : told["caches"]) {
    if (cache["name"] != "belady") continue;
    has_belady = true;
    EXPECT_LT(cache["gets"], 20 * 40);
    EXPECT_EQ(cache["tiers"][0]["capacity"], 40000);
  }
  EXPECT_TRUE(has_belady);
  EXPECT_EQ(told["packing"]["gets_an_epoch"], 1);
}

/// Variables of this process, for as long as it lives.
class PricesInEnvironment {
 public:
  explicit PricesInEnvironment(const std::string& prices_file) {
    ::setenv("LEAT_PROVIDER", "mine", 1);
    ::setenv("LEAT_PRICES", prices_file.c_str(), 1);
    ::setenv("LEAT_NAT", "1", 1);
    ::setenv("LEAT_NODE_PER_HOUR", "7200", 1);
  }
  ~PricesInEnvironment() {
    for (const char* name :
         {"LEAT_PROVIDER", "LEAT_PRICES", "LEAT_NAT", "LEAT_NODE_PER_HOUR"}) {
      ::unsetenv(name);
    }
  }
  PricesInEnvironment(const PricesInEnvironment&) = delete;
  PricesInEnvironment& operator=(const PricesInEnvironment&) = delete;
};

TEST_F(PlanCommandTest, PricesOfTheEnvironmentAreThoseOfADatasetAlone) {
  put("data/0.jpg", std::string(1000, 'x'));
  const std::string jobs = put("jobs.toml", kJobs);
  const PricesInEnvironment prices(
      put("mine.toml", "[mine]\nget_per_1000 = 1000\nnat_per_gb = 1e6\n"));

  const Outcome of_url = run({path("data"), "--json", "--global-batch-size",
                              "1", "--epochs", "1", "--step-time", "1s"});
  const Outcome of_file = run({"--simulate", jobs, "--json"});
  const Outcome given = run({"--simulate", jobs, "--nat"});

  ASSERT_EQ(of_url.code, ExitCode::kDone) << of_url.err;
  const auto told = nlohmann::json::parse(of_url.out);
  EXPECT_EQ(told["provider"], "mine");
  const auto dollars = told["caches"][0]["dollars"];
  EXPECT_NEAR(dollars["gets"].get<double>(), 1, 1e-9);
  EXPECT_GT(dollars["nat"].get<double>(), 0);
  EXPECT_GE(dollars["hours"].get<double>(), 2) << "a second or more of a node";
  ASSERT_EQ(of_file.code, ExitCode::kDone) << of_file.err;
  const auto as_the_file_says =
      nlohmann::json::parse(of_file.out)["simulations"][0]["total"]["dollars"];
  EXPECT_DOUBLE_EQ(as_the_file_says["gets"], 2);
  EXPECT_DOUBLE_EQ(as_the_file_says["nat"], 0);
  EXPECT_DOUBLE_EQ(as_the_file_says["hours"], 0);
  EXPECT_EQ(given.code, ExitCode::kWrongUsage);
  EXPECT_THAT(given.err, HasSubstr("--nat is of a dataset"));
}

TEST_F(PlanCommandTest, ADatasetThatFillsNoStepTakesASmallerBatch) {
  put("data/0.jpg", "x");

  const Outcome outcome = run({path("data")});

  EXPECT_EQ(outcome.code, ExitCode::kWrongUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--global-batch-size 256: "));
  EXPECT_THAT(outcome.err, HasSubstr("has 1 samples, which fill no step"));
}

TEST_F(PlanCommandTest, ThePricesMayBeTheUsers) {
  put("data/0.jpg", "x");
  const std::string data = path("data");
  const std::string prices =
      put("mine.toml", "[minio]\nget_per_1000 = 1000\ngets_per_second = 7\n");

  const Outcome outcome =
      run({data, "--json", "--global-batch-size", "1", "--epochs", "3",
           "--prices", prices, "--provider", "minio"});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto told = nlohmann::json::parse(outcome.out);
  EXPECT_DOUBLE_EQ(told["caches"][0]["dollars"]["gets"], 3);
  EXPECT_EQ(told["provider_gets_per_second"], 7);
  EXPECT_EQ(told["prices_as_of"], "");
  const Outcome wrong = run({data, "--prices", prices});
  EXPECT_EQ(wrong.code, ExitCode::kWrongUsage);
  EXPECT_THAT(wrong.err, HasSubstr("mine.toml: no prices of a provider "
                                   "\"s3\": there are minio"));
}

// Neither a name that is long nor a sum that is small breaks the table.
TEST_F(PlanCommandTest, RowsAreAligned) {
  const std::string named = "a name of a simulation that is really rather long";
  const std::string file =
      put("jobs.toml",
          "[[simulation]]\nsamples = 10\nglobal_batch_size = 5\n"
          "epochs = 2\nbilling = {get_per_1000 = 0.0004}\nname = \"" +
              named + "\"\n[[simulation]]\nname = \"b\\nc\"\n" +
              "samples = 10\nglobal_batch_size = 5\nepochs = 2\n");

  const Outcome outcome = run({"--simulate", file});

  ASSERT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("0.00000800\n"));  // 20 GETs.
  std::istringstream lines(outcome.out);
  std::string header;
  std::string first;
  std::string second;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(first.size(), header.size());
  EXPECT_EQ(second.size(), header.size());
}

TEST(FormatDollarsTest, SaysThreeDigitsOfWhatIsSmall) {
  EXPECT_EQ(format_dollars(0), "0");
  EXPECT_EQ(format_dollars(1234.567), "1234.57");
  EXPECT_EQ(format_dollars(12.2), "12.20");
  EXPECT_EQ(format_dollars(0.1234), "0.123");
  EXPECT_EQ(format_dollars(0.00043), "0.000430");
}

// A file says all of that itself: a flag beside it would do nothing.
TEST_F(PlanCommandTest, AFileTakesNoFlagsOfADataset) {
  const std::string file = put("jobs.toml", kJobs);
  const std::vector<std::vector<std::string>> flags = {
      {"--nodes", "2"},       {"--ram", "8GiB"},  {"--provider", "gcs"},
      {"--prices", "x.toml"}, {"--nat"},          {"--peers-in-zones"},
      {"--epochs", "3"},      {"--region", "eu"}, {"--node-per-hour", "1"}};
  for (std::vector<std::string> words : flags) {
    const std::string name = words.front();
    words.insert(words.end(), {"--simulate", file});
    const Outcome outcome = run(std::move(words));
    EXPECT_EQ(outcome.code, ExitCode::kWrongUsage);
    EXPECT_THAT(outcome.err, HasSubstr(name));
  }
}

TEST_F(PlanCommandTest, AStopEndsEverySimulation) {
  for (const char* kind : {"simulation", "deli", "solar"}) {
    std::string jobs;
    std::istringstream lines(kJobs);
    bool is_wanted = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("[["))
        is_wanted = line == fmt::format("[[{}]]", kind);
      if (is_wanted) jobs += line + '\n';
    }
    std::stop_source stop;
    stop.request_stop();
    const Outcome outcome =
        run({"--simulate", put("one.toml", jobs)}, stop.get_token());
    EXPECT_EQ(outcome.code, ExitCode::kFailed) << kind;
    EXPECT_THAT(outcome.err, HasSubstr("stopped")) << kind;
  }
}

TEST_F(PlanCommandTest, WrongUsageSaysWhat) {
  const auto wrong = [&](std::vector<std::string> words) {
    const Outcome outcome = run(std::move(words));
    EXPECT_EQ(outcome.code, ExitCode::kWrongUsage);
    return outcome.err;
  };

  EXPECT_THAT(wrong({}), HasSubstr("give one of them"));
  EXPECT_THAT(wrong({"x", "--simulate", "y"}), HasSubstr("give one of them"));
  EXPECT_THAT(wrong({"x", "--ram", "much"}), HasSubstr("--ram"));
  EXPECT_THAT(wrong({"x", "--provider", "ibm"}), HasSubstr("gcs, s3"));
  EXPECT_THAT(wrong({"x", "--nodes", "0"}), HasSubstr("--nodes"));
  EXPECT_THAT(wrong({"x", "--nodes", "65536", "--ranks-per-node", "65536"}),
              HasSubstr("4294967296 ranks"));
  EXPECT_THAT(wrong({"x", "--seed", "-1"}), HasSubstr("--seed: -1 is not"));
  EXPECT_THAT(wrong({"x", "--node-per-hour", "nan"}),
              HasSubstr("--node-per-hour: nan is not a number from 0"));
  EXPECT_THAT(wrong({"x", "--latency", "5"}), HasSubstr("--latency"));
  EXPECT_THAT(wrong({"--simulate", put("bad.toml", "[[simulation]]\n")}),
              HasSubstr("is missing"));
}

TEST_F(PlanCommandTest, AFileThatIsNotThereIsNotFound) {
  const Outcome outcome = run({"--simulate", path("no.toml")});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace leat
