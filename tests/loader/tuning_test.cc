// A loader that tunes itself: nothing that training sees depends on it.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "leat/runtime/limits.h"
#include "leat/tune/tuner.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

// Every request takes so long: one at a time, an epoch takes seconds.
constexpr char kSlow[] = "slow:10ms:100%";
constexpr std::chrono::seconds kPatience(120);

LoaderOptions misconfigured() {
  LoaderOptions options = usual_options();
  options.threads = 4;
  options.max_in_flight = 64;
  options.tune.start_threads = 1;
  options.tune.start_in_flight = 1;
  return options;
}

/// Runs epochs until its tuner has decided something.
std::vector<Seen> run_until_decided(Loader& loader) {
  std::vector<Seen> epochs;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    epochs.push_back(must(run_epoch(loader)));
  } while (loader.decisions().empty() &&
           std::chrono::steady_clock::now() < end);
  return epochs;
}

TEST(TuningTest, RaisesWhatIsTooLowAndChangesNeitherOrderNorContent) {
  World world;
  world.serve({kSlow});
  auto loader = must(world.load(kBucketUrl, misconfigured()));
  EXPECT_EQ(loader->totals().threads, 1u);
  EXPECT_EQ(loader->totals().in_flight, 1u);

  const std::vector<Seen> tuned = run_until_decided(*loader);

  ASSERT_FALSE(loader->decisions().empty());
  const Decision first = loader->decisions().front();
  EXPECT_EQ(first.setting, Setting::kInFlight) << to_string(first);
  EXPECT_GT(first.after, first.before);
  for (const Decision& decision : loader->decisions()) {
    if (decision.setting == Setting::kInFlight) {
      EXPECT_LE(decision.after, 64);
    }
    if (decision.setting == Setting::kThreads) {
      EXPECT_LE(decision.after, 4);
    }
  }
  LoaderOptions plain = misconfigured();
  plain.tune.is_on = false;
  auto untuned = must(world.load(kBucketUrl, plain));
  for (const Seen& epoch : tuned) {
    const Seen expected = must(run_epoch(*untuned));
    EXPECT_EQ(epoch.batches, expected.batches);
    EXPECT_EQ(epoch.stats.order_hash, expected.stats.order_hash);
    EXPECT_EQ(epoch.stats.content_hash, expected.stats.content_hash);
    EXPECT_EQ(epoch.stats.gets, expected.stats.gets);
  }
  EXPECT_TRUE(untuned->decisions().empty());
}

TEST(TuningTest, IsNeverBeyondWhatItsAgentAllows) {
  World world;
  world.serve({kSlow});
  auto loader = must(world.load(kBucketUrl, misconfigured()));
  Share share;
  share.in_flight = 3;
  loader->set_share(share);

  (void)run_until_decided(*loader);

  ASSERT_FALSE(loader->decisions().empty());
  for (const Decision& decision : loader->decisions()) {
    if (decision.setting == Setting::kInFlight) {
      EXPECT_LE(decision.after, 3);
    }
  }
  EXPECT_LE(loader->totals().in_flight, 3u);
}

TEST(TuningTest, WhatItsAgentTakesBackIsNoLongerUsedAtOnce) {
  World world;
  LoaderOptions options = misconfigured();
  options.tune = {};
  auto loader = must(world.load(world.folder() + "/train", options));
  ASSERT_EQ(loader->totals().in_flight, 64u);
  Share share;
  share.threads = 2;
  share.in_flight = 3;

  loader->set_share(share);

  EXPECT_LE(loader->totals().in_flight, 3u);
  EXPECT_LE(loader->totals().threads, 2u);
}

TEST(TuningTest, WhatItSawReplaysToWhatItDecided) {
  World world;
  world.serve({kSlow});
  LoaderOptions options = misconfigured();
  options.tune.trace = (world.root() / "tuner.jsonl").string();
  auto loader = must(world.load(kBucketUrl, options));
  (void)run_until_decided(*loader);
  loader->close();

  Tuner replayed;
  std::ifstream trace(options.tune.trace);
  for (std::string line; std::getline(trace, line);) {
    (void)replayed.observe(must(parse_observation(line)));
  }

  const std::vector<Decision> decisions = loader->decisions();
  ASSERT_FALSE(decisions.empty());
  ASSERT_EQ(replayed.decisions().size(), decisions.size());
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    EXPECT_EQ(to_string(replayed.decisions()[i]), to_string(decisions[i]));
  }
}

/// Threads that the tuner may choose, as it is told next.
std::size_t most_threads_of(Loader& loader, const std::string& trace) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  // The last line may have been read while it was being written.
  for (int line = 0; line < 2; ++line) {
    const auto before = std::filesystem::file_size(trace);
    do {
      (void)must(run_epoch(loader));
    } while (std::filesystem::file_size(trace) == before &&
             std::chrono::steady_clock::now() < end);
  }
  loader.close();
  std::ifstream file(trace);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return must(parse_observation(last)).most_threads;
}

// Other programs may be on the cores, too: more threads get more of them. But
// not where the cores are divided, among ranks or by an agent, or as asked for.
TEST(TuningTest, MayTakeTwiceTheCoresWhereNobodyDividesThem) {
  World world;
  const std::size_t cores = effective_limits().threads();
  const auto most = [&](std::size_t asked, const std::string& local_ranks,
                        std::optional<std::size_t> share) {
    LoaderOptions options = usual_options();
    options.threads = asked;
    options.tune = {.trace = (world.root() / "tuner.jsonl").string()};
    std::filesystem::remove(options.tune.trace);
    const Env env = fake_env({{"RANK", "0"},
                              {"WORLD_SIZE", local_ranks},
                              {"LOCAL_RANK", "0"},
                              {"LOCAL_WORLD_SIZE", local_ranks}});
    auto loader = must(Loader::open(must(world.open(world.folder() + "/train")),
                                    options, env));
    if (share) loader->set_share({.threads = share});
    return most_threads_of(*loader, options.tune.trace);
  };

  EXPECT_EQ(most(0, "1", {}), 2 * cores);
  EXPECT_EQ(most(3, "1", {}), 3u);
  EXPECT_EQ(most(0, "2", {}), std::max<std::size_t>(1, cores / 2));
  EXPECT_EQ(most(0, "1", 1), 1u);
  EXPECT_EQ(most(0, "1", 3 * cores), cores);
}

TEST(TuningTest, AWordInTheEnvironmentTurnsItOff) {
  World world;
  Dataset dataset = must(world.open(world.folder() + "/train"));

  auto off = must(
      Loader::open(dataset, misconfigured(), fake_env({{"LEAT_TUNE", "off"}})));
  EXPECT_EQ(off->totals().threads, 4u);
  EXPECT_EQ(off->totals().in_flight, 64u);

  const auto wrong =
      Loader::open(dataset, misconfigured(), fake_env({{"LEAT_TUNE", "no"}}));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(), "LEAT_TUNE=no; it is on or off");
}

TEST(TuningTest, ATraceThatCannotBeWrittenIsSaid) {
  World world;
  LoaderOptions options = misconfigured();
  options.tune.trace = (world.root() / "no such folder" / "t.jsonl").string();

  const auto loader = world.load(world.folder() + "/train", options);

  ASSERT_FALSE(loader);
  EXPECT_EQ(loader.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(loader.error().message().find("t.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace leat
