// Numbers of options: a wrong one is refused by the option's name.
#include "leat/cli/number_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "leat/cli/command_line.h"
#include "leat/cli/commands.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

/// The error text of a command that exits with 2.
std::string refusal(std::vector<std::string> words) {
  std::ostringstream out;
  std::ostringstream err;
  CommandContext context{
      .out = out, .err = err, .env = fake_env({}), .stop = {}};
  const std::vector<CommandGroup> commands{
      {"all",
       {&kBenchCommand, &kExplainCommand, &kProfileCommand, &kRecommendCommand,
        &kWarmCommand}}};
  const std::string said = words[0] + " " + words.back();
  EXPECT_EQ(run_command_line(std::move(words), commands, context),
            ExitCode::kWrongUsage)
      << said;
  return err.str();
}

TEST(NumberChecksTest, WhatIsWrongIsRefusedByName) {
  const std::vector<std::vector<std::string>> wrong = {
      {"bench", "x", "--threads", "-1"},
      {"bench", "x", "--threads", "100000"},
      {"bench", "x", "--max-in-flight", "-1"},
      {"bench", "x", "--epochs", "-1"},
      {"bench", "x", "--seed", "-1"},
      {"bench", "x", "--cache-window", "-1"},
      {"bench", "x", "--patience", "nan"},
      {"bench", "x", "--global-batch-size", "1.5"},
      {"bench", "x", "--cache-ram", "x"},
      {"bench", "x", "--memory", "x"},
      {"bench", "x", "--step-time", "x"},
      {"bench", "x", "--node-per-hour", "inf"},
      {"explain", "x", "--for", "5"},
      {"warm", "x", "--cache-disk", "d", "--max-in-flight", "-1"},
      {"warm", "x", "--cache-disk", "d", "--cache-disk-limit", "-1"},
      {"profile", "x", "--limit", "5"},
      {"profile", "x", "--node-per-hour", "nan"},
      {"recommend", "x", "--catalog", "y", "--hours", "nan"},
      {"recommend", "x", "--catalog", "y", "--hours", "-2"},
      {"recommend", "x", "--catalog", "y", "--epochs", "0"}};
  for (std::vector<std::string> words : wrong) {
    const std::string named = words[words.size() - 2] + ": ";
    // Before the command that profile runs, which has words of its own.
    if (words[0] == "profile") words = {words[0], words[2], words[3]};
    const std::string said = refusal(words);
    EXPECT_THAT(said, HasSubstr(named));
    EXPECT_LT(said.size(), 160u) << said;
  }
}

TEST(NumberChecksTest, ARangeIncludesItsEnds) {
  std::string text = "1";
  EXPECT_EQ(count_between(1, 3)(text), "");
  text = "3";
  EXPECT_EQ(count_between(1, 3)(text), "");
  for (const char* wrong : {"0", "4", "-1", "+1", "1.0", "0x1", "", " 1", "1 ",
                            "18446744073709551617"}) {
    text = wrong;
    EXPECT_NE(count_between(1, 3)(text), "") << wrong;
  }
}

TEST(NumberChecksTest, ACountIsReadInBaseTen) {
  CLI::App app;
  std::uint64_t seed = 0;
  std::optional<std::uint32_t> rank;
  app.add_option("--seed", seed)->transform(count_between(0, 100));
  app.add_option("--rank", rank)->transform(count_between(0, 100));

  app.parse("--seed 010 --rank 08");

  EXPECT_EQ(seed, 10u);
  EXPECT_EQ(rank, 8u);
}

/// Those of its groups, too.
std::vector<CLI::Option*> all_options_of(CLI::App& app) {
  std::vector<CLI::Option*> options = app.get_options();
  for (CLI::App* group : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : group->get_options()) options.push_back(option);
  }
  return options;
}

void give(CLI::Option& option, const std::string& text) {
  option.clear();
  option.add_result(text);
  option.run_callback();
}

/// How many numbers the options of this command are.
std::size_t check_numbers_of(const Command& command) {
  CLI::App app("", std::string(command.name));
  const auto run = command.add(app);  // The numbers are in it.
  std::size_t numbers = 0;
  for (CLI::Option* option : all_options_of(app)) {
    SCOPED_TRACE(std::string(command.name) + " " + option->get_name());
    const std::string type = option->get_type_name();
    const bool is_count = type == "UINT" || type == "INT";
    if (!is_count && type != "FLOAT") continue;
    ++numbers;
    EXPECT_THROW(give(*option, "nan"), CLI::ValidationError);
    if (!is_count) continue;
    EXPECT_THROW(give(*option, "-1"), CLI::ValidationError);
    EXPECT_NO_THROW(give(*option, "010"));
    EXPECT_EQ(option->results(), CLI::results_t{"10"});
  }
  return numbers;
}

TEST(NumberChecksTest, NoNumberOfACommandIsWithoutOne) {
  std::size_t numbers = 0;
  for (const CommandGroup& group : commands()) {
    for (const Command* command : group.commands) {
      if (command->add != nullptr) numbers += check_numbers_of(*command);
    }
  }
  EXPECT_GT(numbers, 40u);
}

TEST(NumberChecksTest, AnAmountIsFinite) {
  std::string text = "0";
  EXPECT_EQ(amount_up_to(10)(text), "");
  EXPECT_NE(amount_up_to(10, /*is_positive=*/true)(text), "");
  text = "1e1";
  EXPECT_EQ(amount_up_to(10)(text), "");
  for (const char* wrong : {"nan", "-nan", "inf", "-0.5", "10.01", "1e400"}) {
    text = wrong;
    EXPECT_NE(amount_up_to(10)(text), "") << wrong;
    EXPECT_NE(amount_between(0, 10)(text), "") << wrong;
  }
}

}  // namespace
}  // namespace leat
