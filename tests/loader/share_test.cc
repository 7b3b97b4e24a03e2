// A loader that is told, while it runs, how much of its node it may use.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/units.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

LoaderOptions shared() {
  LoaderOptions options = usual_options();
  options.threads = 4;
  options.max_in_flight = 16;
  options.tune.is_on = false;
  return options;
}

Share share_of(std::size_t threads, std::size_t in_flight) {
  Share share;
  share.threads = threads;
  share.in_flight = in_flight;
  return share;
}

TEST(ShareTest, ChangesNeitherOrderNorContent) {
  World world;
  world.serve();
  auto alone = must(world.load(kBucketUrl, shared()));
  const Seen expected = must(run_epoch(*alone));

  auto loader = must(world.load(kBucketUrl, shared()));
  std::atomic<bool> has_ended = false;
  std::thread changing([&] {
    for (std::size_t i = 0; !has_ended; ++i) {
      Share share = share_of(1 + i % 4, 1 + i % 16);
      if (i % 3 == 0) share.bytes_per_second = 1'000'000 * (1 + i % 7);
      loader->set_share(share);
    }
  });
  const Seen seen = must(run_epoch(*loader));
  has_ended = true;
  changing.join();

  EXPECT_EQ(seen.batches, expected.batches);
  EXPECT_EQ(seen.stats.order_hash, expected.stats.order_hash);
  EXPECT_EQ(seen.stats.content_hash, expected.stats.content_hash);
}

TEST(ShareTest, BoundsTheRequestsInFlight) {
  World world;
  world.serve();
  auto loader = must(world.load(kBucketUrl, shared()));
  loader->set_share(share_of(1, 2));
  std::atomic<bool> has_ended = false;
  std::int64_t most = 0;
  std::thread watching([&] {
    while (!has_ended) {
      most = std::max(most, loader->metrics()->value(Metric::kStoreInFlight));
      std::this_thread::yield();
    }
  });
  (void)must(run_epoch(*loader));
  has_ended = true;
  watching.join();

  EXPECT_LE(most, 2);
  EXPECT_EQ(loader->totals().threads, 1u);
  EXPECT_EQ(loader->totals().in_flight, 2u);
}

TEST(ShareTest, GivesNoMoreThanWasAskedFor) {
  World world;
  auto loader = must(world.load(world.folder() + "/train", shared()));
  EXPECT_EQ(loader->most_share(), share_of(4, 16));

  loader->set_share(share_of(100, 1000));
  EXPECT_EQ(loader->totals().threads, 4u);
  EXPECT_EQ(loader->totals().in_flight, 16u);
  loader->set_share(share_of(0, 0));
  EXPECT_EQ(loader->totals().threads, 1u);
  EXPECT_EQ(loader->totals().in_flight, 1u);
  loader->set_share({});
  EXPECT_EQ(loader->totals().threads, 4u);
  EXPECT_EQ(loader->totals().in_flight, 16u);
}

TEST(ShareTest, WhatWasLeftOpenMayGrow) {
  World world;
  LoaderOptions options = usual_options();
  options.threads = 0;
  options.max_in_flight = 0;
  options.tune.is_on = false;  // It would choose within.
  auto loader = must(world.load(world.folder() + "/train", options));
  const Share most = loader->most_share();
  ASSERT_GT(most.in_flight, loader->totals().in_flight);
  // No op of these waits for anything but a core.
  EXPECT_EQ(most.threads, loader->totals().threads);

  loader->set_share(most);
  const Seen seen = must(run_epoch(*loader));

  EXPECT_EQ(loader->totals().in_flight, most.in_flight);
  EXPECT_EQ(seen.stats.samples, World::kSamples);
}

TEST(ShareTest, TellsWhatItHasDone) {
  World world;
  world.serve();
  auto loader = must(world.load(kBucketUrl, shared()));
  const Seen first = must(run_epoch(*loader));
  const Seen second = must(run_epoch(*loader));

  const LoaderTotals rates = loader->totals();
  EXPECT_EQ(rates.samples, 2 * World::kSamples);
  EXPECT_EQ(rates.batches, first.batches.size() + second.batches.size());
  EXPECT_EQ(rates.stalls.total(), rates.wait);
  EXPECT_GE(rates.elapsed, rates.wait + rates.training);
  EXPECT_GT(rates.training.count(), 0);
  // A sample in 17 is empty and is not asked for.
  EXPECT_GE(rates.reads, 2 * World::kSamples * 15 / 17);
  EXPECT_GT(rates.read_time.count(), 0);
  EXPECT_GT(rates.tasks, 0u);
  EXPECT_GT(rates.cpu.count(), 0);
}

// Their time and bytes come with the answer: counted when they are sent, the
// first ones would take no time at all.
TEST(ShareTest, AReadCountsOnceItIsOver) {
  World world;
  world.serve();
  Dataset dataset = must(world.open(kBucketUrl));  // While the bucket is well.
  world.serve({"stall:100%"});
  auto loader = must(world.load(std::move(dataset), shared()));
  const Loader::Iteration iteration = must(loader->begin());
  while (loader->metrics()->value(Metric::kStoreInFlight) == 0) {
    (void)must(loader->next_within(iteration, std::chrono::milliseconds(200)));
  }
  EXPECT_EQ(loader->totals().reads, 0u);
  EXPECT_EQ(loader->totals().read_time.count(), 0);
}

// Smaller and larger while it runs: the held records follow, and nothing else.
TEST(ShareTest, ResizesTheTiersOfTheCache) {
  World world;
  world.serve();
  auto alone = must(world.load(kBucketUrl, shared()));
  std::vector<Seen> expected;
  for (int epoch = 0; epoch < 6; ++epoch) {
    expected.push_back(must(run_epoch(*alone)));
  }
  LoaderOptions options = shared();
  options.cache = CacheOptions{.ram_bytes = kMiB,
                               .disk = (world.root() / "cache").string(),
                               .disk_limit_bytes = 2 * kMiB};
  auto loader = must(world.load(kBucketUrl, options));
  EXPECT_EQ(loader->most_share().ram_bytes, kMiB);
  EXPECT_EQ(loader->most_share().disk_bytes, 2 * kMiB);
  const std::uint64_t small = kMiB / 8;
  Share share;
  std::vector<Seen> seen;
  const auto hold_at_most = [&](std::uint64_t bytes) {
    for (int i = 0; i < 6000; ++i) {
      const LoaderTotals now = loader->totals();
      if (now.ram_allowed_bytes <= bytes && now.disk_allowed_bytes <= bytes &&
          now.ram_bytes <= bytes && now.disk_bytes <= bytes) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    seen.push_back(must(run_epoch(*loader)));
  }
  EXPECT_EQ(seen[1].stats.misses, 0u);
  EXPECT_GT(loader->totals().ram_bytes, small);

  share.ram_bytes = share.disk_bytes = small;
  loader->set_share(share);
  EXPECT_TRUE(hold_at_most(small));
  seen.push_back(must(run_epoch(*loader)));
  EXPECT_TRUE(hold_at_most(small));
  EXPECT_GT(seen[2].stats.misses, World::kSamples / 2);

  loader->set_share({});
  // The first reads of the next epoch were sent while it was small.
  for (int epoch = 0; epoch < 3; ++epoch) {
    seen.push_back(must(run_epoch(*loader)));
  }
  EXPECT_EQ(seen[5].stats.misses, 0u);

  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].stats.order_hash, expected[i].stats.order_hash);
    EXPECT_EQ(seen[i].stats.content_hash, expected[i].stats.content_hash);
  }
  std::vector<std::pair<Setting, double>> told;
  for (const Decision& line : loader->decisions()) {
    told.emplace_back(line.setting, line.after);
  }
  const std::vector<std::pair<Setting, double>> all = {
      {Setting::kRamBytes, small},
      {Setting::kDiskBytes, small},
      {Setting::kRamBytes, kMiB},
      {Setting::kDiskBytes, 2 * kMiB}};
  EXPECT_EQ(told, all);
  loader->close();
  for (const Metric gauge :
       {Metric::kCacheRamBytes, Metric::kCacheDiskBytes,
        Metric::kCacheRamAllowedBytes, Metric::kCacheDiskAllowedBytes}) {
    EXPECT_EQ(loader->metrics()->value(gauge), 0);
  }
}

TEST(ShareTest, OfALoaderThatIsClosedIsIgnored) {
  World world;
  auto loader = must(world.load(world.folder() + "/train", shared()));
  loader->close();
  loader->set_share(share_of(1, 1));
  EXPECT_EQ(loader->totals().tasks, 0u);
}

}  // namespace
}  // namespace leat
