#include "leat/engine/agent_link.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += word + '\0';
  return line;
}

TEST(JobNameTest, IsTheScriptOrTheProgram) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"/usr/bin/python3", "-u", "/home/a/train.py", "--token", "secret"},
       "train.py"},
      {{"python3.11", "-X", "dev", "-m", "package.train", "x"},
       "package.train"},
      {{"python", "-c", "login('secret')"}, "python"},
      {{"python"}, "python"},
      {{"python", "-m"}, "python"},
      {{"/opt/bin/leat", "bench", "s3://b/x"}, "leat"},
      {{}, ""}};
  for (const auto& [words, expected] : cases) {
    EXPECT_EQ(job_name(fake_env({}), line_of(words)), expected);
  }
  EXPECT_EQ(job_name(fake_env({}), "a/b"), "b")
      << "cut in the middle of a word";
}

TEST(JobNameTest, IsWhatItsUserOrSlurmCallsIt) {
  const std::string line = line_of({"python", "train.py"});
  EXPECT_EQ(job_name(fake_env({{"SLURM_JOB_NAME", "sweep"}}), line), "sweep");
  EXPECT_EQ(job_name(fake_env({{"SLURM_JOB_NAME", "sweep"},
                               {"LEAT_JOB_NAME", "mine"}}),
                     line),
            "mine");
}

}  // namespace
}  // namespace leat
