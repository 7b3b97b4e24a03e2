// `leat verify`: its exit codes, and how runs are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/testing/command_test.h"
#include "leat/engine/order_log/writer.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

using Outcome = testing::CommandOutcome;

class VerifyCommandTest : public testing::CommandTest {
 protected:
  /// A step of two samples for each rank, which begin at `first`.
  void put(const std::string& name, Rank rank, std::uint64_t first) const {
    std::filesystem::create_directories(
        std::filesystem::path(path(name)).parent_path());
    auto log = OrderLogWriter::open(path(name), {.rank = rank,
                                                 .data = "digest",
                                                 .shuffle = "full",
                                                 .tail = "keep",
                                                 .samples = 4});
    ASSERT_TRUE(log) << log.error().message();
    (*log)->add(OrderLogBatch{.to = 2ULL * rank.world_size,
                              .ids = {{first}, {first + 1}}});
  }
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "verify");
    return CommandTest::run({&kVerifyCommand}, std::move(words));
  }
};

TEST_F(VerifyCommandTest, TakesAFolderTheNameOfALogOrAList) {
  put("a/run.rank0.order", {.rank = 0, .world_size = 2}, 0);
  put("a/run.rank1.order", {.rank = 1, .world_size = 2}, 2);
  put("a/other.order", {.rank = 0, .world_size = 1}, 0);
  std::ofstream(path("a/notes.txt")) << "not a log";
  put("b/run.rank0.order", {.rank = 0, .world_size = 2}, 0);
  put("b/run.rank1.order", {.rank = 1, .world_size = 2}, 2);
  const std::string list =
      path("a/run.rank0.order") + "," + path("a/run.rank1.order");

  for (const std::string& a : {path("a/run.order"), list}) {
    const Outcome outcome = run({a, path("b")});
    EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
    EXPECT_THAT(outcome.out,
                HasSubstr("proven: the two runs saw one stream: the same "
                          "samples in each step, in the same rows of each "
                          "rank; no sample came twice in an epoch\n"));
    EXPECT_THAT(outcome.out,
                HasSubstr("  in all    1 epochs, 1 steps, 4 samples\n"));
    EXPECT_THAT(outcome.out, HasSubstr("2 logs of ranks; world size 2\n"));
  }
}

TEST_F(VerifyCommandTest, ADifferenceIsAFailure) {
  put("a.order", {}, 0);
  put("b.order", {}, 1);

  const Outcome outcome = run({path("a.order"), path("b.order")});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("leat: not proven: the first difference "
                                     "is in step 0 of epoch 0"));
  const Outcome json = run({path("a.order"), path("b.order"), "--json"});
  EXPECT_EQ(json.code, ExitCode::kFailed);
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["is_proven"], false);
  EXPECT_THAT(report["finding"], HasSubstr("has samples 2"));
}

TEST_F(VerifyCommandTest, ANameThatIsNoUtf8IsToldInJson) {
  put("r\xff.order", {}, 0);

  const Outcome outcome = run({path("r\xff.order"), "--json"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_THAT(report["runs"][0]["name"], HasSubstr("r\uFFFD.order"));
}

TEST_F(VerifyCommandTest, ALogThatCannotBeReadProvesNothing) {
  put("a.order", {}, 0);
  std::ofstream(path("b.order")) << "not a log";
  std::filesystem::create_directories(path("empty"));

  for (const auto& [words, why] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{path("a.order"), path("b.order")}, "b.order is not an order log"},
           {{path("none.order")}, "there is no order log of that name"},
           {{path("empty")}, "there is no order log in this folder"},
           {{path("none/run.order")}, "none/run.order cannot be read"},
           {{path("a.order"), path("a.order"), path("a.order")}, "or two"},
           {{","}, "the name of a run is empty"},
           {{}, "RUN"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, ExitCode::kWrongUsage) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }
}

}  // namespace
}  // namespace leat
