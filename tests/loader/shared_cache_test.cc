// Loaders of several jobs over one cache, each on a thread of its own: they
// share files and locks of open files, as processes do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

CacheOptions shared_in(const World& world) {
  return {.disk = (world.root() / "records").string(),
          .disk_limit_bytes = 8 * kMiB,
          .is_shared = true};
}

LoaderOptions with_shared_cache(CacheOptions cache, std::uint64_t seed) {
  LoaderOptions options = usual_options();
  options.cache = std::move(cache);
  options.seed = seed;
  options.epochs = 2;
  options.drop_last = false;
  return options;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> ids) {
  std::ranges::sort(ids);
  return ids;
}

std::vector<std::uint64_t> all_of(std::uint64_t samples) {
  std::vector<std::uint64_t> ids(samples);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// Two epochs of each job, all at once: the requests to the store.
std::uint64_t misses_of_three(World& world, const CacheOptions& cache,
                              const std::vector<std::uint64_t>& seeds) {
  std::vector<std::unique_ptr<Loader>> loaders;
  for (const std::uint64_t seed : seeds) {
    loaders.push_back(
        must(world.load(kBucketUrl, with_shared_cache(cache, seed))));
  }
  std::vector<std::jthread> jobs;
  for (auto& loader : loaders) {
    jobs.emplace_back([&loader] {
      for (int epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(sorted(flat(must(run_epoch(*loader)))),
                  all_of(World::kSamples));
      }
    });
  }
  jobs.clear();
  std::uint64_t misses = 0;
  for (auto& loader : loaders) {
    for (const EpochStats& epoch : loader->stats()) misses += epoch.misses;
    loader->close();
    EXPECT_EQ(loader->metrics()->value(Metric::kCacheDiskBytes), 0);
    EXPECT_EQ(loader->metrics()->value(Metric::kRuntimeReservedBytes), 0);
  }
  return misses;
}

TEST(SharedCacheTest, ThreeJobsFetchEachSampleOnce) {
  for (const std::vector<std::uint64_t>& seeds :
       {std::vector<std::uint64_t>{1, 2, 3}, {4, 4, 4}}) {
    World world;
    world.serve();
    auto alone = must(world.load(kBucketUrl, usual_options()));
    (void)must(run_epoch(*alone));
    const std::uint64_t with_bytes = alone->stats()[0].gets;

    EXPECT_EQ(misses_of_three(world, shared_in(world), seeds), with_bytes);
  }
}

TEST(SharedCacheTest, FaultsAndTooLittleRoomCostRequestsAlone) {
  World world;
  world.serve({"503:3%", "reset:2%", "truncate:2%"});
  CacheOptions cache = shared_in(world);
  cache.disk_limit_bytes = 400 * kKiB;

  EXPECT_GT(misses_of_three(world, cache, {1, 1, 2}), 0u);
}

TEST(SharedCacheTest, ALoaderThatIsClosedInTheMiddleKeepsNobodyWaiting) {
  World world;
  world.serve();
  const CacheOptions cache = shared_in(world);
  auto closed = must(world.load(kBucketUrl, with_shared_cache(cache, 1)));
  auto other = must(world.load(kBucketUrl, with_shared_cache(cache, 1)));
  const Loader::Iteration epoch = must(closed->begin());
  (void)must(closed->next(epoch));

  std::jthread reads([&other] {
    EXPECT_EQ(flat(must(run_epoch(*other))).size(), World::kSamples);
  });
  closed->close();
}

/// Keeps some samples, each once, so that a loader of another order finds them.
void warm(World& world, std::uint64_t batches) {
  CacheOptions cache = shared_in(world);
  LoaderOptions options = with_shared_cache(cache, 77);
  options.memory_bytes = 100 * kKiB;  // Two batches: no more come ahead.
  options.max_in_flight = 2;
  auto loader = must(world.load(kBucketUrl, options));
  const Loader::Iteration epoch = must(loader->begin());
  for (std::uint64_t i = 0; i < batches; ++i) (void)must(loader->next(epoch));
}

TEST(SharedCacheTest, WhatIsCachedComesFirstAndAStateHasWhatWasOvertaken) {
  for (const std::uint64_t within : {std::uint64_t{40}, World::kSamples}) {
    World world;
    world.serve();
    warm(world, 4);
    auto plain =
        must(world.load(kBucketUrl, with_shared_cache(shared_in(world), 5)));
    const std::vector<std::uint64_t> in_order = flat(must(run_epoch(*plain)));
    plain.reset();
    std::filesystem::remove_all(world.root() / "records");
    warm(world, 4);
    CacheOptions cache = shared_in(world);
    cache.first_within = within;
    std::vector<std::uint64_t> came;
    std::string state;
    {
      auto loader = must(world.load(kBucketUrl, with_shared_cache(cache, 5)));
      const Loader::Iteration epoch = must(loader->begin());
      for (int i = 0; i < 3; ++i) {
        Loader::Next next = must(loader->next(epoch));
        for (const SampleId id : next.batch().ids) came.push_back(id.value);
      }
      state = loader->state();
    }
    EXPECT_NE(came, std::vector(in_order.begin(), in_order.begin() + 48));
    if (within == World::kSamples) {
      EXPECT_THAT(state, ::testing::HasSubstr("left_behind"));
    }

    auto resumed = must(world.load(kBucketUrl, with_shared_cache(cache, 5)));
    must(resumed->load_state(state));
    const std::vector<std::uint64_t> rest = flat(must(run_epoch(*resumed)));

    came.insert(came.end(), rest.begin(), rest.end());
    EXPECT_EQ(sorted(came), all_of(World::kSamples));
    EXPECT_EQ(sorted(flat(must(run_epoch(*resumed)))), all_of(World::kSamples));
  }
}

}  // namespace
}  // namespace leat
