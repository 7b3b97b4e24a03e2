#include "leat/engine/agent_link.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/agent/wire/unix_socket.h"

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
      {{"python", "-uc", "TOKEN='x'"}, "python"},
      {{"python", "-ucTOKEN='x'"}, "python"},
      {{"python", "-W", "ignore", "-Wonce", "-uX", "dev", "-c", "TOKEN='x'"},
       "python"},
      {{"python", "import os\nTOKEN='x'"}, "python"},
      {{"python", "-", "--token", "secret"}, "python"},
      {{"python", "-um", "pkg.train"}, "pkg.train"},
      {{"python", "-umpkg.train"}, "pkg.train"},
      {{"python", "-uW", "ignore", "train.py"}, "train.py"},
      {{"python", "--check-hash-based-pycs", "always", "a/train.py"},
       "train.py"},
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

using JobVariables = std::map<std::string, std::string, std::less<>>;

std::string key_of(const JobVariables& variables,
                   const JobLoader& loader = {.dataset = "s3://b/x",
                                              .world_size = 8}) {
  return job_key(fake_env(variables), loader);
}

const JobVariables kWithId = {{"TORCHELASTIC_RUN_ID", "7"}};
const JobVariables kSlurm = {{"SLURM_JOB_ID", "7"}};
// As torchrun has it that was given no id.
const JobVariables kMeeting = {{"TORCHELASTIC_RUN_ID", "none"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", "29500"}};

TEST(JobKeyTest, RanksOfOneJobSayTheSame) {
  for (const JobVariables& job : {kWithId, kSlurm, kMeeting}) {
    EXPECT_EQ(key_of(job), key_of(job));
  }
  EXPECT_NE(key_of({}), key_of({})) << "nothing says that they belong together";
}

TEST(JobKeyTest, LoadersOfOneTrainingAreJobsOfTheirOwn) {
  for (const JobVariables& job : {kWithId, kSlurm, kMeeting}) {
    EXPECT_NE(key_of(job),
              key_of(job, {.dataset = "s3://b/validation", .world_size = 8}));
    EXPECT_NE(
        key_of(job),
        key_of(job, {.dataset = "s3://b/x", .world_size = 8, .ordinal = 1}))
        << "one for evaluation, of the same data";
    EXPECT_NE(key_of(job),
              key_of(job, {.dataset = "s3://b/x", .world_size = 4}));
    const JobLoader alone{.dataset = "s3://b/x", .world_size = 1};
    EXPECT_NE(key_of(job, alone), key_of(job, alone));
  }
}

TEST(JobKeyTest, TrainingsOfOneAllocationOrIdAreJobsOfTheirOwn) {
  for (const JobVariables& job : {kWithId, kSlurm, kMeeting}) {
    JobVariables one = job;
    JobVariables other = job;
    one["MASTER_PORT"] = "29500";
    other["MASTER_PORT"] = "29501";
    EXPECT_NE(key_of(one), key_of(other));
    other = one;
    other["MASTER_ADDR"] = "10.0.0.7";
    EXPECT_NE(key_of(one), key_of(other));
  }
  JobVariables first = kSlurm;
  JobVariables second = kSlurm;
  first["SLURM_STEP_ID"] = "0";
  second["SLURM_STEP_ID"] = "1";
  EXPECT_NE(key_of(first), key_of(second));
}

TEST(JobKeyTest, RanksThatMeetAreOneJobThoughEachIsAStepOfSlurm) {
  JobVariables first = kSlurm;
  first["MASTER_ADDR"] = "10.0.0.7";
  first["MASTER_PORT"] = "29500";
  JobVariables second = first;
  first["SLURM_STEP_ID"] = "0";
  second["SLURM_STEP_ID"] = "1";

  EXPECT_EQ(key_of(first), key_of(second));
}

TEST(JobKeyTest, ALongDatasetHidesNothingElse) {
  const JobLoader first{.dataset = std::string(2 * kMostNameBytes, 'x'),
                        .world_size = 8};
  JobLoader second = first;
  second.ordinal = 1;
  EXPECT_NE(key_of(kSlurm, first).substr(0, kMostNameBytes),
            key_of(kSlurm, second).substr(0, kMostNameBytes));
}

TEST(AgentLinkTest, ItsEndIsHeardThoughAForkedChildHoldsItsSocket) {
  std::string folder = "/tmp/leat-link-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/agent.sock";
  const auto agent = listen_at(path, std::nullopt);
  ASSERT_TRUE(agent) << agent.error().message();
  Metrics metrics;
  auto link =
      open_agent_link({.paths = {path},
                       .registration = {.job = "a"},
                       .totals = [] { return LoaderTotals{}; },
                       .metrics = [&]() -> const Metrics& { return metrics; },
                       .set_share = [](const Share&) {},
                       .set_pace = [](const Pace&) {},
                       .elsewhere = [] { return std::optional<Pace>(); },
                       .trace = [] { return JobTrace{}; }});
  pollfd coming{.fd = agent->socket.get(), .events = POLLIN};
  ASSERT_EQ(::poll(&coming, 1, 60000), 1);
  const OwnedFd end(
      ::accept4(agent->socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(end);

  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // If this test is killed.
    while (true) ::pause();
  }
  ASSERT_GT(child, 0);
  link.reset();

  std::array<char, 4096> bytes;
  ssize_t got = 1;
  while (got > 0) {
    pollfd source{.fd = end.get(), .events = POLLIN};
    if (::poll(&source, 1, 10000) <= 0) break;
    got = ::recv(end.get(), bytes.data(), bytes.size(), 0);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(got, 0) << "it did not hang up";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace leat
