// Loaders under a real agent: found, told, lost and found again.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "leat/agent/agent.h"
#include "leat/base/units.h"
#include "leat/engine/agent_link.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

/// Until `is_so`, or a minute.
bool in_time(const std::function<bool()>& is_so) {
  for (int i = 0; i < 6000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class LoaderAgentTest : public ::testing::Test {
 protected:
  LoaderAgentTest() {
    options_.socket = (world_.root() / "agent.sock").string();
    options_.node.threads = 4;
    options_.node.in_flight = 10;
    options_.heeds_other_programs = false;
  }

  std::unique_ptr<Agent> agent() { return must(open_agent(options_)); }

  /// A loader of its own URL, so of its own job.
  std::unique_ptr<Loader> loader() {
    LoaderOptions options = usual_options();
    options.threads = 4;
    options.max_in_flight = 16;
    options.cache = cache_;
    const Env env = fake_env({{"LEAT_AGENT", options_.socket}});
    return must(Loader::open(must(world_.open("file://" + world_.folder())),
                             options, env));
  }

  World world_;
  AgentOptions options_;
  std::optional<CacheOptions> cache_;
};

TEST_F(LoaderAgentTest, TwoLoadersShareAndOneHasAllOfIt) {
  const auto open = agent();
  auto one = loader();
  ASSERT_TRUE(in_time([&] { return one->totals().in_flight == 10; }));
  {
    auto other = loader();
    EXPECT_TRUE(in_time([&] {
      return one->totals().in_flight == 5 && other->totals().in_flight == 5;
    }));
    EXPECT_EQ(open->view().jobs.size(), 2u);
    EXPECT_EQ(must(run_epoch(*other)).batches.size(), 15u);
  }

  EXPECT_TRUE(in_time([&] { return open->view().jobs.size() == 1; }));
}

// A job comes, and the cache of the one that runs becomes smaller; it leaves,
// and that becomes what it was.
TEST_F(LoaderAgentTest, CachesFollowTheSharesOfTheJobs) {
  options_.node.cache_bytes = 2 * kMiB;
  const auto open = agent();
  cache_ = CacheOptions{.ram_bytes = 2 * kMiB};
  auto one = loader();
  ASSERT_TRUE(
      in_time([&] { return one->totals().ram_allowed_bytes == 2 * kMiB; }));
  for (int epoch = 0; epoch < 2; ++epoch) (void)must(run_epoch(*one));
  EXPECT_EQ(one->stats().back().misses, 0u);
  {
    auto other = loader();
    EXPECT_TRUE(in_time([&] {
      return one->totals().ram_allowed_bytes <= kMiB &&
             other->totals().ram_allowed_bytes <= kMiB;
    }));
    const LoaderTotals now = one->totals();
    EXPECT_LE(now.ram_bytes, now.ram_allowed_bytes);
    EXPECT_EQ(must(run_epoch(*one)).batches.size(), 15u);
    EXPECT_EQ(must(run_epoch(*other)).batches.size(), 15u);
    for (const JobView& job : open->view().jobs) {
      EXPECT_LE(job.share.ram_bytes, kMiB) << job.id;
    }
  }

  EXPECT_TRUE(
      in_time([&] { return one->totals().ram_allowed_bytes == 2 * kMiB; }));
  const std::vector<Decision> told = one->decisions();
  EXPECT_TRUE(std::ranges::any_of(told, [](const Decision& line) {
    return line.setting == Setting::kRamBytes && line.after <= kMiB;
  }));
}

TEST_F(LoaderAgentTest, WhoLooksAtAJobSeesItsLastSteps) {
  const auto open = agent();
  auto one = loader();
  ASSERT_TRUE(in_time([&] { return open->view().jobs.size() == 1; }));
  const std::string id = open->view().jobs[0].id;
  JobTrace seen;

  ASSERT_TRUE(in_time([&] {
    (void)must(run_epoch(*one));
    seen = open->trace(id).value_or(JobTrace());
    return !seen.steps.empty();
  }));

  for (const TraceStep& step : seen.steps) {
    EXPECT_GT(step.size, 0u);
    EXPECT_LE(step.asked, step.given);
    EXPECT_LE(step.ready, step.given);
    ASSERT_FALSE(step.samples.empty());
    for (const TraceSample& sample : step.samples) {
      EXPECT_LE(sample.reserved, sample.fetched);
      EXPECT_LE(sample.fetched, sample.finished);
      EXPECT_LE(sample.finished, step.samples[0].finished);
    }
  }
}

TEST_F(LoaderAgentTest, LoadersOutliveTheirAgentAndFindTheNext) {
  auto first = agent();
  auto one = loader();
  ASSERT_TRUE(in_time([&] { return one->totals().in_flight == 10; }));

  first.reset();
  EXPECT_EQ(must(run_epoch(*one)).batches.size(), 15u);
  EXPECT_EQ(one->totals().in_flight, 10u);

  options_.node.in_flight = 6;
  const auto second = agent();
  EXPECT_TRUE(in_time([&] { return one->totals().in_flight == 6; }));
}

TEST_F(LoaderAgentTest, KilledAgentsStopNoLoader) {
  auto one = loader();
  std::mt19937 random(3);
  for (int i = 0; i < 25; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto open = open_agent(options_);
      while (open) ::pause();
      ::_exit(1);
    }
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    ASSERT_EQ(must(run_epoch(*one)).batches.size(), 15u);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the socket was stale";
  }
  const auto open = agent();
  EXPECT_TRUE(in_time([&] { return open->view().jobs.size() == 1; }));
}

}  // namespace
}  // namespace leat
