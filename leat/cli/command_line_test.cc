#include "leat/cli/command_line.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <streambuf>

namespace leat {
namespace {

std::function<Result<void>(CommandContext&)> add_echo(CLI::App& app) {
  auto word = std::make_shared<std::string>();
  app.add_option("WORD", *word, "what to say")->required();
  app.footer("Example:\n  leat echo hello");
  return [word](CommandContext& context) -> Result<void> {
    if (*word == "bad") return Error(ErrorCode::kInvalidArgument, "bad word");
    if (*word == "down") return Error(ErrorCode::kUnavailable, "it is down");
    context.out << *word << '\n';
    return {};
  };
}

const Command kEcho{.name = "echo", .summary = "say it", .add = add_echo};

Result<void> print_words(std::span<const std::string> words,
                         CommandContext& context) {
  for (const std::string& word : words) context.out << '<' << word << '>';
  if (words.size() == 1) return Error(ErrorCode::kInvalidArgument, "no words");
  return {};
}

const Command kTaker{
    .name = "take", .summary = "take it", .take_words = print_words};

struct Outcome {
  ExitCode code;
  std::string out;
  std::string err;
};

Outcome run(std::vector<std::string> words) {
  std::ostringstream out;
  std::ostringstream err;
  CommandContext context{
      .out = out, .err = err, .env = fake_env({}), .stop = {}};
  const std::vector<CommandGroup> commands{{"Make a noise", {&kEcho, &kTaker}}};
  const ExitCode code = run_command_line(std::move(words), commands, context);
  return {code, out.str(), err.str()};
}

TEST(CommandLineTest, RunsTheCommandItNames) {
  const Outcome outcome = run({"echo", "hello"});

  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_EQ(outcome.out, "hello\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandLineTest, ACommandMayTakeItsWordsAsTheyAre) {
  EXPECT_EQ(run({"take", "--help", "echo", "--", "-x"}).out,
            "<take><--help><echo><--><-x>");
  EXPECT_EQ(run({"take"}).code, ExitCode::kWrongUsage);
  EXPECT_EQ(run({"take"}).err, "leat: no words\n");
  EXPECT_NE(run({}).out.find("take it"), std::string::npos);
  EXPECT_NE(run({"--help"}).out.find("take it"), std::string::npos);
}

TEST(CommandLineTest, HelpGoesToStandardOutputAndIsNoFailure) {
  const Outcome outcome = run({"--help"});

  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_NE(outcome.out.find("say it"), std::string::npos);
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandLineTest, HelpOfACommandShowsItsExample) {
  const Outcome outcome = run({"echo", "--help"});

  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_NE(outcome.out.find("leat echo hello"), std::string::npos);
}

TEST(CommandLineTest, SaysItsVersion) {
  const Outcome outcome = run({"--version"});

  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_EQ(outcome.out.rfind("leat ", 0), 0u);
}

TEST(CommandLineTest, WrongUsageExitsWithTwoAndOneLine) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"nonsense"},
                                             {"--frob"},
                                             {"--json", "echo"},
                                             {"echo"},
                                             {"echo", "a", "b"},
                                             {"echo", "bad"}}) {
    const Outcome outcome = run(words);

    EXPECT_EQ(outcome.code, ExitCode::kWrongUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("leat: ", 0), 0u) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  }
}

TEST(CommandLineTest, WithoutWordsTellsWhatThereIsByPurpose) {
  const Outcome outcome = run({});

  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_NE(outcome.out.find("\nMake a noise:\n  echo        say it\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(run({"--help"}).out.find("Make a noise"), std::string::npos);
}

TEST(CommandLineTest, NamesTheCommandThatMayHaveBeenMeant) {
  EXPECT_EQ(run({"ehco", "hello"}).err,
            "leat: no command 'ehco'; did you mean 'echo'?\n");
  EXPECT_EQ(run({"train"}).err, "leat: no command 'train'; see leat --help\n");
  EXPECT_EQ(run({"--json", "echo"}).err,
            "leat: '--json' stands before a command: name the command first; "
            "see leat --help\n");
}

TEST(CommandLineTest, FailureExitsWithOneAndItsMessage) {
  const Outcome outcome = run({"echo", "down"});

  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_EQ(outcome.err, "leat: it is down\n");
}

/// Takes nothing: a disk that is full.
class FullBuffer : public std::streambuf {
  int overflow(int) override { return traits_type::eof(); }
};

TEST(CommandLineTest, WhatCannotBeWrittenIsAFailure) {
  for (const char* word : {"echo", "--help", "--version"}) {
    FullBuffer full;
    std::ostream out(&full);
    std::ostringstream err;
    CommandContext context{
        .out = out, .err = err, .env = fake_env({}), .stop = {}};
    const std::vector<CommandGroup> commands{{"Make a noise", {&kEcho}}};
    std::vector<std::string> words{word};
    if (words.front() == "echo") words.emplace_back("hello");

    EXPECT_EQ(run_command_line(words, commands, context), ExitCode::kFailed);
    EXPECT_NE(err.str().find("standard output"), std::string::npos);
  }
}

TEST(CommandLineTest, WhoseReaderHasGoneEndsWithoutAWord) {
  FullBuffer full;
  std::ostream out(&full);
  std::ostringstream err;
  CommandContext context{.out = out,
                         .err = err,
                         .env = fake_env({}),
                         .stop = {},
                         .is_reader_gone = [] { return true; }};
  const std::vector<CommandGroup> commands{{"Make a noise", {&kEcho}}};

  EXPECT_EQ(run_command_line({"echo", "hello"}, commands, context),
            ExitCode::kReaderGone);
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace leat
