#include "leat/engine/agent_link.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
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

TEST(JobKeyTest, RanksOfOneJobSayTheSame) {
  using Variables = std::map<std::string, std::string, std::less<>>;
  const auto key = [](const Variables& variables,
                      const std::string& dataset = "s3://b/x") {
    return job_key(fake_env(variables), dataset);
  };
  const Variables with_id = {{"TORCHELASTIC_RUN_ID", "7"}};
  const Variables slurm = {{"SLURM_JOB_ID", "7"}};
  // As torchrun has it that was given no id.
  const Variables meeting = {{"TORCHELASTIC_RUN_ID", "none"},
                             {"WORLD_SIZE", "8"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29500"}};
  for (const Variables& job : {with_id, slurm, meeting}) {
    EXPECT_EQ(key(job), key(job));
    EXPECT_NE(key(job), key(job, "s3://b/validation"));
  }
  Variables other = meeting;
  other["MASTER_PORT"] = "29501";
  EXPECT_NE(key(meeting), key(other));

  EXPECT_NE(key({}), key({})) << "nothing says that they belong together";
  const Variables alone = {{"WORLD_SIZE", "1"}, {"MASTER_PORT", "29500"}};
  EXPECT_NE(key(alone), key(alone));
}

}  // namespace
}  // namespace leat
