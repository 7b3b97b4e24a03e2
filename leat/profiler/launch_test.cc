#include "leat/profiler/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <utility>
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
}

TEST(LaunchTest, VariablesStandAmongTheWordsOnOtherMachinesAlone) {
  EXPECT_THAT(one({"./train.sh"}, {.variables = {"A=secret"}}),
              ElementsAre("./train.sh"));
  EXPECT_THAT(one({"./train.sh"}, {.nodes = {{"srun"}}, .variables = {"A=b"}}),
              ElementsAre("srun", "env", "A=b", "./train.sh"));
}

TEST(LaunchTest, BehindAPrefixNothingIsKnownToRunHere) {
  EXPECT_TRUE(runs_here({}));
  EXPECT_FALSE(runs_here({.nodes = {{"ssh", "gpu5"}}}));
  EXPECT_FALSE(runs_here({.nodes = {{}, {}}}));
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
  const auto commands = launch_commands(
      Words{"python", "train.py"}, {.processes_per_node = 2,
                                    .uses_torchrun = true,
                                    .nodes = {{}, {"ip", "netns", "exec", "b"}},
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

TEST(LaunchTest, WhatWrapsACommandStandsOnItsNode) {
  EXPECT_THAT(one({"./train.sh"}, {.nodes = {{"srun", "--nodelist=a"}},
                                   .wrapper = {"unshare", "sh"},
                                   .variables = {"A=b"}}),
              ElementsAre("srun", "--nodelist=a", "unshare", "sh", "env", "A=b",
                          "./train.sh"));
}

/// Runs here, in a shell, the line that a shell behind ssh is given; returns
/// its output.
std::string said_by(const Words& command, LaunchPlan plan, const char* input) {
  plan.nodes = {{"/usr/bin/ssh", "a"}};
  plan.grace = std::chrono::seconds(1);
  const Words words = one(command, plan);
  EXPECT_EQ(words.size(), 3u);
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  EXPECT_EQ(::pipe(in.data()) + ::pipe(out.data()), 0);
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::setsid();
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
    ::execlp("sh", "sh", "-c", words.back().c_str(), nullptr);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  std::string said;
  std::array<char, 256> piece;
  while (true) {
    const ssize_t got = ::read(out[0], piece.data(), piece.size());
    if (got <= 0) break;
    said.append(piece.data(), static_cast<std::size_t>(got));
    if (said.ends_with(input)) ::close(std::exchange(in[1], -1));
  }
  int status = 0;
  ::waitpid(shell, &status, 0);
  ::close(out[0]);
  if (in[1] >= 0) ::close(in[1]);
  return said + (WIFSIGNALED(status)
                     ? "signal " + std::to_string(WTERMSIG(status))
                     : "status " + std::to_string(WEXITSTATUS(status)));
}

TEST(LaunchTest, BehindSshWordsArriveAsTheyAre) {
  const Words command = {
      "sh",    "-c",        "pwd; printf '%s|' \"$@\"; exit 7",
      "x",     "two words", "it's",
      "$HOME", "*",         "",
      "a;b"};

  EXPECT_EQ(said_by(command, {.folder = "/usr/bin"}, "never"),
            "/usr/bin\ntwo words|it's|$HOME|*||a;b|status 7");
  EXPECT_EQ(
      said_by({"sh", "-c", "echo $PATH $A"},
              {.variables = {"A=b c"}, .path = "/bin:/usr/b in"}, "never"),
      "/bin:/usr/b in b c\nstatus 0");
  EXPECT_EQ(
      said_by({"sh", "-c", "read -r line; echo \"<$line>\""}, {}, "never"),
      "<>\nstatus 0")
      << "its own input is empty";
}

TEST(LaunchTest, WhatRunsBehindSshEndsWithTheConnection) {
  EXPECT_EQ(
      said_by({"sh", "-c", "echo begun; sleep 1000; echo on"}, {}, "begun\n"),
      "begun\nsignal 15");
  EXPECT_EQ(said_by({"sh", "-c", "trap '' TERM; echo begun; sleep 1000"}, {},
                    "begun\n"),
            "begun\nsignal 9");
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
