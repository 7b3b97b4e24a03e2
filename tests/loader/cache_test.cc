// A loader with a cache delivers what one without delivers, and asks for less.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "leat/cache/segment_format.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

LoaderOptions with_cache(CacheOptions cache, std::uint64_t epochs) {
  LoaderOptions options = usual_options();
  options.cache = std::move(cache);
  options.epochs = epochs;
  return options;
}

std::vector<EpochStats> run(Loader& loader, std::uint64_t epochs) {
  for (std::uint64_t i = 0; i < epochs; ++i) (void)must(run_epoch(loader));
  return loader.stats();
}

void expect_same_content(const std::vector<EpochStats>& a,
                         const std::vector<EpochStats>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].order_hash, b[i].order_hash) << i;
    EXPECT_EQ(a[i].content_hash, b[i].content_hash) << i;
  }
}

TEST(LoaderCacheTest, ChangesNothingButTheRequests) {
  World world;
  auto plain = must(world.load(world.folder() + "/train", usual_options()));
  const std::vector<EpochStats> expected = run(*plain, 3);
  for (const std::vector<std::string>& faults :
       {std::vector<std::string>{}, {"503:3%", "reset:2%", "truncate:2%"}}) {
    world.serve(faults);
    auto loader = must(world.load(
        kBucketUrl, with_cache({.ram_bytes = 4 * kMiB}, /*epochs=*/3)));

    const std::vector<EpochStats> stats = run(*loader, 3);

    expect_same_content(stats, expected);
    EXPECT_GT(stats[0].misses, World::kSamples / 2);
    EXPECT_EQ(stats[0].ram_hits, 0u);
    for (std::size_t epoch : {1, 2}) {
      EXPECT_EQ(stats[epoch].misses, 0u);
      EXPECT_EQ(stats[epoch].gets, 0u);
      EXPECT_EQ(stats[epoch].bytes_read, 0u);
      EXPECT_EQ(stats[epoch].ram_hits, stats[0].misses);
      EXPECT_EQ(stats[epoch].stalls.total(), stats[epoch].wait);
    }
  }
}

TEST(LoaderCacheTest, ALaterLoaderFindsWhatTheDiskHolds) {
  World world;
  const CacheOptions cache{.disk = (world.root() / "cache").string(),
                           .disk_limit_bytes = 8 * kMiB};
  const std::string url = world.folder() + "/train";
  std::vector<EpochStats> first;
  {
    auto loader = must(world.load(url, with_cache(cache, 1)));
    first = run(*loader, 1);
    EXPECT_EQ(first[0].disk_hits, 0u);
  }

  auto loader = must(world.load(url, with_cache(cache, 1)));
  const std::vector<EpochStats> second = run(*loader, 1);

  expect_same_content(first, second);
  EXPECT_EQ(second[0].disk_hits, first[0].misses);
  EXPECT_EQ(second[0].misses, 0u);
  loader->close();
  for (const Metric gauge : {Metric::kCacheDiskBytes, Metric::kCacheRamBytes}) {
    EXPECT_EQ(loader->metrics()->value(gauge), 0);
  }
}

/// Gives all objects other bytes, and forgets the catalogue of the former ones;
/// returns their room in a tier.
std::uint64_t write_anew(const World& world) {
  std::uint64_t cost = 0;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(world.folder())) {
    if (!file.is_regular_file() || file.file_size() == 0) continue;
    cost += record_cost(file.file_size());
    const std::string other(file.file_size(), 'x');
    std::ofstream(file.path(), std::ios::binary) << other;
  }
  std::filesystem::remove_all(world.root() / "cache");
  return cost;
}

// Within an epoch it may yet be asked for; by the next one it would have been.
TEST(LoaderCacheTest, WhatAnEarlierRunLeftGoesOnceAnEpochHasNotAskedForIt) {
  constexpr std::uint64_t kMostEpochs = 50;
  World world;
  const std::string url = world.folder() + "/train";
  const CacheOptions cache{.disk = (world.root() / "tier").string(),
                           .disk_limit_bytes = write_anew(world)};
  {
    auto loader = must(world.load(url, with_cache(cache, 1)));
    EXPECT_GT(run(*loader, 1)[0].misses, World::kSamples / 2);
  }
  (void)write_anew(world);

  auto loader = must(world.load(url, with_cache(cache, kMostEpochs)));
  std::vector<EpochStats> stats = run(*loader, 1);
  while (stats.back().misses != 0 && stats.size() < kMostEpochs) {
    stats = run(*loader, 1);
  }

  EXPECT_EQ(stats.front().disk_hits, 0u);  // It was all left by the other run.
  // It goes by the second epoch; which of this run's is not written by then is
  // written in the next.
  EXPECT_EQ(stats.back().disk_hits, stats.front().misses);
  EXPECT_EQ(stats.back().misses, 0u);
}

// Two ranks of a node, side by side: a sample that one has fetched the other
// need not.
TEST(LoaderCacheTest, LocalRanksShareTheirMemory) {
  World world;
  const Dataset dataset = must(world.open(world.folder() + "/train"));
  std::vector<std::unique_ptr<Loader>> ranks;
  for (std::uint32_t rank : {0, 1}) {
    LoaderOptions options = usual_options();
    options.cache = CacheOptions{.ram_bytes = 8 * kMiB};
    ranks.push_back(must(world.load_local_rank(dataset, options, rank)));
  }
  std::uint64_t first_misses = 0;
  std::uint64_t misses = 1;
  // Each sees what the other wrote within a second.
  for (int epoch = 0; epoch < 200 && misses != 0; ++epoch) {
    misses = 0;
    for (const auto& rank : ranks) {
      (void)must(run_epoch(*rank));
      misses += rank->stats().back().misses;
    }
    if (epoch == 0) first_misses = misses;
  }

  EXPECT_GT(first_misses, World::kSamples / 2);
  EXPECT_EQ(misses, 0u);
  // No record twice: both together hold what the data needs, and no more.
  std::int64_t bytes = 0;
  for (const auto& rank : ranks) {
    bytes += rank->metrics()->value(Metric::kCacheRamBytes);
  }
  EXPECT_LT(bytes, static_cast<std::int64_t>(first_misses * 2 * 4300));
}

/// Half of the bytes, and read one after the other, so that nothing is on its
/// way twice.
LoaderOptions with_half(const std::string& policy) {
  LoaderOptions options =
      with_cache({.ram_bytes = 240 * record_cost(3000) / 2, .policy = policy},
                 /*epochs=*/100);
  options.max_in_flight = 1;
  options.memory_bytes = 128 * kKiB;
  options.tune.is_on = false;
  return options;
}

// By the times of an order that is over, tiers would drop the samples that are
// read soonest, and hit a third of those that have room.
TEST(LoaderCacheTest, WhoGoesBackOrJumpsHitsAsMuchAsWhoGoesOn) {
  World world;
  for (const char* policy : {"belady", "windowed_belady"}) {
    LoaderOptions options = with_half(policy);
    if (options.cache->policy == "windowed_belady") {
      options.cache->window = 2 * World::kSamples;
    }
    auto loader = must(world.load(world.folder() + "/train", options));
    const std::string state = loader->state();
    const std::vector<EpochStats> before = run(*loader, 4);
    ASSERT_GT(before.back().ram_hits, World::kSamples / 3) << policy;

    must(loader->load_state(state));
    const std::uint64_t after_state = run(*loader, 2)[4].ram_hits;
    must(loader->set_epoch(50));
    const std::uint64_t after_jump = run(*loader, 1)[6].ram_hits;

    EXPECT_GT(after_state, World::kSamples / 3) << policy;
    EXPECT_GT(after_jump, World::kSamples / 3) << policy;
  }
}

TEST(LoaderCacheTest, WhatCannotBeIsRefused) {
  World world;
  const auto refused = [&](CacheOptions cache) {
    auto loader =
        world.load(world.folder() + "/train", with_cache(std::move(cache), 1));
    return loader ? std::string("accepted") : loader.error().message();
  };

  EXPECT_NE(refused({}).find("ram="), std::string::npos);
  EXPECT_NE(refused({.disk_limit_bytes = 1}).find("disk="), std::string::npos);
  EXPECT_NE(refused({.disk = "c", .disk_limit_bytes = 0}).find("of 0 keeps"),
            std::string::npos);
  EXPECT_NE(
      refused({.ram_bytes = kMiB, .policy = "windowed_belady"}).find("window="),
      std::string::npos);
  EXPECT_NE(refused({.ram_bytes = kMiB, .window = 5}).find("windowed_belady"),
            std::string::npos);
  EXPECT_NE(refused({.ram_bytes = kMiB, .policy = "mru"}).find("belady"),
            std::string::npos);
}

}  // namespace
}  // namespace leat
