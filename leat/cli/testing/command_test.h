// Runs commands of `leat` in a test's own process.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/env.h"
#include "leat/cli/command.h"
#include "leat/cli/command_line.h"

namespace leat::testing {

/// The exit code and the texts of a command that has ended.
struct CommandOutcome {
  ExitCode code;
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string, std::less<>>;

/// Runs the words, without `leat` itself, as a program of these commands would.
inline CommandOutcome run_commands(std::vector<const Command*> commands,
                                   std::vector<std::string> words,
                                   Environment environment = {},
                                   std::stop_token stop = {}) {
  std::ostringstream out;
  std::ostringstream err;
  CommandContext context{.out = out,
                         .err = err,
                         .env = fake_env(std::move(environment)),
                         .stop = std::move(stop)};
  const std::vector<CommandGroup> groups{{"all", std::move(commands)}};
  const ExitCode code = run_command_line(std::move(words), groups, context);
  return {code, out.str(), err.str()};
}

/// A folder for each test, gone after it, and a cache folder within.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~CommandTest() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const {
    return (root_ / name).string();
  }

  /// Writes a file, and returns its path.
  std::string put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return path(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  CommandOutcome run(std::vector<const Command*> commands,
                     std::vector<std::string> words,
                     Environment environment = {},
                     std::stop_token stop = {}) const {
    environment.emplace("LEAT_CACHE_DIR", path("cache"));
    return run_commands(std::move(commands), std::move(words),
                        std::move(environment), std::move(stop));
  }

 private:
  const ::testing::TestInfo* test_ =
      ::testing::UnitTest::GetInstance()->current_test_info();
  /// Tests of two fixtures may have one name, and run at once.
  std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) /
      (std::string(test_->test_suite_name()) + "." + test_->name());
};

}  // namespace leat::testing
