#include "leat/profiler/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

Words one(const Words& command, const LaunchPlan& plan) {
  const auto commands = launch_commands(command, plan);
  EXPECT_TRUE(commands);
  return commands ? commands->front() : Words();
}

TEST(LaunchTest, AloneACommandRunsAsItIs) {
  EXPECT_THAT(one({"./train.sh", "--lr", "3"}, {}),
              ElementsAre("./train.sh", "--lr", "3"));
  EXPECT_THAT(one({"./train.sh"}, {.variables = {"A=b"}}),
              ElementsAre("env", "A=b", "./train.sh"));
}

TEST(LaunchTest, TorchrunStandsAfterPythonsOwnOptions) {
  const LaunchPlan plan = {.processes_per_node = 4, .uses_torchrun = true};

  EXPECT_THAT(one({"python3.11", "-u", "-X", "dev", "train.py", "-u"}, plan),
              ElementsAre("python3.11", "-u", "-X", "dev", "-m",
                          "torch.distributed.run", "--nproc-per-node", "4",
                          "--standalone", "train.py", "-u"));
  EXPECT_THAT(one({"/opt/venv/bin/python", "-m", "project.train"}, plan),
              ElementsAre("/opt/venv/bin/python", "-m", "torch.distributed.run",
                          "--nproc-per-node", "4", "--standalone", "-m",
                          "project.train"));
}

TEST(LaunchTest, EachNodeHasItsPrefixAndItsRank) {
  const auto commands =
      launch_commands(Words{"python", "train.py"},
                      {.processes_per_node = 2,
                       .uses_torchrun = true,
                       .nodes = {{"ssh", "a"}, {"ip", "netns", "exec", "b"}},
                       .master_address = "10.0.0.1",
                       .master_port = 1234});

  ASSERT_TRUE(commands);
  ASSERT_EQ(commands->size(), 2u);
  EXPECT_THAT((*commands)[1],
              ElementsAre("ip", "netns", "exec", "b", "python", "-m",
                          "torch.distributed.run", "--nproc-per-node", "2",
                          "--nnodes", "2", "--node-rank", "1", "--master-addr",
                          "10.0.0.1", "--master-port", "1234", "train.py"));
}

TEST(LaunchTest, SaysWhatTorchrunCannotStart) {
  const LaunchPlan plan = {.processes_per_node = 2, .uses_torchrun = true};
  const auto refusal = [&](const Words& command) {
    const auto commands = launch_commands(command, plan);
    return commands ? std::string("accepted") : commands.error().message();
  };
  EXPECT_THAT(refusal({}), HasSubstr("no command"));
  EXPECT_THAT(refusal({"./train.sh"}),
              HasSubstr("\"./train.sh\" is not python"));
  EXPECT_THAT(refusal({"pythonic", "x.py"}), HasSubstr("is not python"));
  EXPECT_THAT(refusal({"python", "-c", "pass"}), HasSubstr("script or -m"));
  EXPECT_THAT(refusal({"python", "-X"}), HasSubstr("script or -m"));
}

}  // namespace
}  // namespace leat
