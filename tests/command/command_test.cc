// A program with commands of its own is a program like any other: its overview
// and its help tell of them, wrong words bring advice, and they run. (The
// Python side of the toy in Python: tests/python/test_command.py.)

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "leat/cli/command_line.h"
#include "leat/cli/testing/command_test.h"
#include "tests/command/commands.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

testing::CommandOutcome run(std::vector<std::string> words) {
  std::ostringstream out;
  std::ostringstream err;
  CommandContext context{
      .out = out, .err = err, .env = fake_env({}), .stop = {}};
  const ExitCode code = run_command_line(std::move(words), commands(), context);
  return {code, out.str(), err.str()};
}

TEST(CommandOfOurOwnTest, Runs) {
  const auto outcome = run({"toy", "bear"});

  EXPECT_EQ(outcome.code, ExitCode::kDone) << outcome.err;
  EXPECT_EQ(outcome.out, "hello bear\n");
}

TEST(CommandOfOurOwnTest, IsToldOf) {
  EXPECT_THAT(run({}).out,
              AllOf(HasSubstr("Play:\n  toy         say hello\n"),
                    HasSubstr("  toy-python  say hello from Python\n")));
  EXPECT_THAT(run({"toy", "--help"}).out,
              AllOf(HasSubstr("who is greeted"), HasSubstr("leat toy bear")));
  EXPECT_THAT(run({"tpy"}).err, HasSubstr("did you mean 'toy'?"));
  const auto wrong = run({"toy"});
  EXPECT_EQ(wrong.code, ExitCode::kWrongUsage);
  EXPECT_THAT(wrong.err, HasSubstr("see leat toy --help"));
}

TEST(CommandOfOurOwnTest, InPythonGetsItsWordsAsTheyAre) {
  const auto python =
      std::filesystem::temp_directory_path() /
      ("leat_command_test." + std::to_string(::getpid()) + ".sh");
  // Says the words behind `-c PROGRAM`.
  std::ofstream(python) << "#!/bin/sh\nshift 2\necho \"$@\" >&2\nexit 7\n";
  ASSERT_EQ(::chmod(python.c_str(), 0700), 0);

  CommandContext context{.out = std::cout,
                         .err = std::cerr,
                         .env = fake_env({{"LEAT_PYTHON", python}}),
                         .stop = {}};
  const std::vector<std::string> words = {"toy-python", "bear", "--help"};

  EXPECT_EXIT((void)run_command_line(words, commands(), context),
              ExitedWithCode(7), "toy_of_python toy-python bear --help");

  std::filesystem::remove(python);
  EXPECT_EQ(run_command_line(words, commands(), context), ExitCode::kFailed);
}

}  // namespace
}  // namespace leat
