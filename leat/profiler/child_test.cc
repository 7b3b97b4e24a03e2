#include "leat/profiler/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace leat {
namespace {

using Path = std::filesystem::path;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

std::string content(const Path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Dead, or a corpse that its parent has yet to look at.
bool has_ended(pid_t pid) {
  const std::string stat = content("/proc/" + std::to_string(pid) + "/stat");
  return stat.empty() ||
         std::string_view("ZX").find(stat[stat.rfind(')') + 2]) !=
             std::string_view::npos;
}

class ChildTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Child> start(const std::string& script) const {
    return Child::start({"sh", "-c", script, folder_.string()}, log_);
  }

  /// Waits for `script` to write the number of a process, and returns it.
  pid_t noted(const std::string& name) const {
    for (int i = 0; i < 3000; ++i) {
      const std::string text = content(folder_ / name);
      if (text.ends_with('\n')) return std::atoi(text.c_str());
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << name << " was not written: " << content(log_);
    return 0;
  }

  const Path folder_ = std::filesystem::temp_directory_path() /
                       ("leat_child_test." + std::to_string(::getpid()));
  const Path log_ = folder_ / "log";
};

/// Goes on in a session of its own, as torchrun's ranks do, and does not mind
/// being asked to end.
constexpr const char* kStubborn =
    "setsid sh -c 'trap \"\" TERM; echo $$ > \"$0/rank\"; "
    "while :; do sleep 0.1; done' \"$0\" & ";

TEST_F(ChildTest, TellsTheStatusOfTheProgram) {
  const auto status = [&](const std::string& script) {
    auto child = start(script);
    EXPECT_TRUE(child);
    const auto ended = child->wait(60s, {});
    EXPECT_TRUE(ended);
    return ended ? *ended : -1;
  };

  EXPECT_EQ(status("exit 7"), 7);
  EXPECT_EQ(status("kill -9 $$"), 128 + SIGKILL);
  EXPECT_EQ(status("echo told; echo more >&2"), 0);
  EXPECT_EQ(content(log_), "told\nmore\n");
}

TEST_F(ChildTest, SaysThatThereIsNoSuchProgram) {
  const auto child = Child::start({"leat-no-such-program"}, log_);

  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(child.error().message(),
            "leat-no-such-program cannot be started: No such file or "
            "directory");
}

TEST_F(ChildTest, TheProgramHasNoDescriptorOfOurs) {
  const int ours = ::open(log_.c_str(), O_RDONLY | O_CREAT, 0600);
  auto child = start("ls /proc/self/fd");
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait(60s, {}));
  ::close(ours);

  EXPECT_EQ(content(log_), "0\n1\n2\n3\n") << "3 is that of ls";
}

TEST_F(ChildTest, VariablesAreInTheEnvironmentAndNotAmongTheWords) {
  ::setenv("LEAT_CHILD_TEST", "old", 1);
  ::setenv("LEAT_CHILD_TEST_KEPT", "kept", 1);
  const std::vector<std::string> variables = {"LEAT_CHILD_TEST=new=er"};
  auto child = Child::start(
      {"sh", "-c",
       "echo $LEAT_CHILD_TEST $LEAT_CHILD_TEST_KEPT; "
       "tr '\\0' ' ' < /proc/$$/cmdline | grep -c 'n[e]w=er'; exit 0"},
      log_, ChildInput::kEmpty, -1, variables);
  ::unsetenv("LEAT_CHILD_TEST");
  ::unsetenv("LEAT_CHILD_TEST_KEPT");
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait(60s, {}));

  EXPECT_EQ(content(log_), "new=er kept\n0\n");
}

TEST_F(ChildTest, InputIsEmptyOrStaysOpen) {
  const auto script = "echo $PPID > \"$0/keeper\"; cat; echo end";
  auto empty = start(script);
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty->wait(60s, {}), 0);
  EXPECT_EQ(content(log_), "end\n");

  auto open = Child::start({"sh", "-c", script, folder_.string()}, log_,
                           ChildInput::kOpen);
  ASSERT_TRUE(open);
  EXPECT_FALSE(open->wait(200ms, {})) << "cat waits for more";
  EXPECT_EQ(content(log_), "end\n");
}

TEST_F(ChildTest, WhatTheProgramLeftBehindEndsWithIt) {
  auto child = start(std::string(kStubborn) +
                     "until test -s \"$0/rank\"; do sleep 0.01; done");
  ASSERT_TRUE(child);

  const auto status = child->wait(60s, {});

  ASSERT_TRUE(status);
  EXPECT_EQ(*status, 0);
  EXPECT_TRUE(has_ended(noted("rank")));
}

TEST_F(ChildTest, OfSeveralTheFirstThatFailsIsTold) {
  std::vector<Child> children;
  for (const char* script : {"sleep 1000", "exit 7", "exit 0"}) {
    auto child = start(script);
    ASSERT_TRUE(child);
    children.push_back(*std::move(child));
  }

  const auto failed = Child::wait_for_failure(children, 60s, {});

  ASSERT_TRUE(failed) << "the first of them runs for longer";
  EXPECT_EQ(failed->child, 1u);
  EXPECT_EQ(failed->status, 7);
}

TEST_F(ChildTest, WhenOneFailsTheOthersEndAtOnceAndNotInTurn) {
  const auto begin_stubborn = [this](const std::string& name) {
    return start("trap '' TERM; echo $$ > \"$0/" + name +
                 "\"; while :; do sleep 0.1; done");
  };
  std::chrono::steady_clock::time_point failed_at;
  {
    std::vector<Child> children;
    for (const char* name : {"1", "2", "3", "4"}) {
      auto child = begin_stubborn(name);
      ASSERT_TRUE(child);
      children.push_back(*std::move(child));
      (void)noted(name);
    }
    auto child = start("exit 7");
    ASSERT_TRUE(child);
    children.push_back(*std::move(child));
    failed_at = std::chrono::steady_clock::now();

    const auto failed = Child::wait_for_failure(children, 60s, {});

    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->child, 4u);
  }
  // Each is killed 2 s after it is asked to end.
  EXPECT_LT(std::chrono::steady_clock::now() - failed_at, 4s);
}

TEST_F(ChildTest, OfSeveralAllAreAwaited) {
  std::vector<Child> children;
  for (const char* script : {"exit 0", "sleep 0.2; echo last"}) {
    auto child = start(script);
    ASSERT_TRUE(child);
    children.push_back(*std::move(child));
  }

  const auto done = Child::wait_for_failure(children, 60s, {});

  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, 0);
  EXPECT_EQ(content(log_), "last\n");
}

TEST_F(ChildTest, EndsWithItsOwner) {
  pid_t rank = 0;
  {
    auto child = start(std::string(kStubborn) + "wait");
    ASSERT_TRUE(child);
    rank = noted("rank");
    EXPECT_FALSE(has_ended(rank));
  }
  EXPECT_TRUE(has_ended(rank));
}

TEST_F(ChildTest, EndsWithAnOwnerThatIsKilled) {
  // So that the keeper comes to us when its owner has gone, and can be awaited.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto child =
        start("echo $PPID > \"$0/keeper\"; " + std::string(kStubborn) + "wait");
    ::pause();
    ::_exit(child ? 0 : 1);
  }
  const pid_t rank = noted("rank");
  const pid_t keeper = noted("keeper");
  EXPECT_FALSE(has_ended(rank));

  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  ::waitpid(keeper, nullptr, 0);

  EXPECT_TRUE(has_ended(keeper));
  EXPECT_TRUE(has_ended(rank));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(ChildTest, WhatIsSentToATerminalsProgramsDoesNotEndTheKeeper) {
  auto child = start("echo $PPID > \"$0/keeper\"; sleep 1000");
  ASSERT_TRUE(child);
  const pid_t keeper = noted("keeper");

  for (const int signal : {SIGTERM, SIGINT}) ::kill(keeper, signal);
  EXPECT_NE(::getsid(keeper), ::getsid(0)) << "a closed terminal would end it";
  const auto cut = child->wait(100ms, {});

  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code(), ErrorCode::kDeadlineExceeded)
      << "the keeper was there until it was told to end";
}

}  // namespace
}  // namespace leat
