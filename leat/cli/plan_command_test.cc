// `leat plan` on a file of jobs and on a folder of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "leat/cli/command_line.h"
#include "leat/cli/commands.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  ExitCode code;
  std::string out;
  std::string err;
};

class PlanCommandTest : public ::testing::Test {
 protected:
  PlanCommandTest() {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~PlanCommandTest() override { std::filesystem::remove_all(root_); }

  std::string put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return (root_ / name).string();
  }

  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "plan");
    std::ostringstream out;
    std::ostringstream err;
    CommandContext context{
        .out = out,
        .err = err,
        .env = fake_env({{"LEAT_CACHE_DIR", (root_ / "cache").string()}}),
        .stop = {}};
    const std::vector<const Command*> commands{&kPlanCommand};
    const ExitCode code = run_command_line(std::move(words), commands, context);
    return {code, out.str(), err.str()};
  }

  std::filesystem::path root_;
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
      run({(root_ / "data").string(), "--json", "--global-batch-size", "4",
           "--nodes", "2", "--ram", "10KB", "--epochs", "20"});

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
    EXPECT_EQ(cache["tiers"][0]["capacity"], 10000);
  }
  EXPECT_TRUE(has_belady);
  EXPECT_EQ(told["packing"]["gets_an_epoch"], 1);
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
  EXPECT_THAT(wrong({"--simulate", put("bad.toml", "[[simulation]]\n")}),
              HasSubstr("is missing"));
}

TEST_F(PlanCommandTest, AFileThatIsNotThereIsNotFound) {
  const Outcome outcome = run({"--simulate", (root_ / "no.toml").string()});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace leat
