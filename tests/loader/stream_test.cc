// Tests of shards that are indexed while the first epoch reads them: here their
// threads, under every sanitizer. tests/python/test_stream.py compares the
// delivered samples with other readers'.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "leat/base/hash.h"
#include "leat/base/units.h"
#include "leat/codec/testing/tar_builder.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

constexpr char kShardsUrl[] = "s3://shards";
constexpr std::uint64_t kShards = 6;
constexpr std::uint64_t kMembers = 40;

/// A world with the bucket `shards` beside its own: small ones, windows of one
/// piece.
class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    const auto folder = world_.root() / "shards";
    std::filesystem::create_directories(folder);
    for (std::uint64_t shard = 0; shard < kShards; ++shard) {
      testing::TarBuilder tar;
      for (std::uint64_t i = 0; i < kMembers; ++i) {
        const std::uint64_t seed = shard * kMembers + i;
        tar.add(fmt::format("{:05}.bin", seed),
                std::string(mix64(seed) % 3000,
                            static_cast<char>('a' + seed % 26)));
      }
      std::ofstream(folder / fmt::format("{}.tar", shard), std::ios::binary)
          << tar.finish();
    }
    world_.serve({"slow:2ms:50%"});
    options_ = usual_options();
    options_.shuffle = ShuffleChoice::kStream;
    options_.shuffle_window = 1;
  }

  std::unique_ptr<Loader> load() {
    return must(world_.load_unindexed(kShardsUrl, options_));
  }

  static constexpr std::uint32_t kRanks = 4;
  std::unique_ptr<Loader> load(std::uint32_t rank) {
    LoaderOptions options = options_;
    options.rank = {.rank = rank, .world_size = kRanks};
    return must(world_.load_unindexed(kShardsUrl, options));
  }

  World world_;
  LoaderOptions options_;
};

TEST_F(StreamTest, TheFirstEpochAndTheIndexedOnesAreOfOneOrder) {
  auto first = load();
  ASSERT_FALSE(first->length()) << "it has a catalogue";
  const Seen streamed = must(run_epoch(*first));
  const Seen second = must(run_epoch(*first));
  EXPECT_EQ(streamed.stats.samples, kShards * kMembers /
                                        options_.global_batch_size *
                                        options_.global_batch_size);

  auto indexed = load();  // By the catalogue that was kept.
  ASSERT_TRUE(indexed->length());
  const Seen expected = must(run_epoch(*indexed));
  EXPECT_EQ(streamed.batches, expected.batches);
  EXPECT_EQ(streamed.stats.order_hash, expected.stats.order_hash);
  EXPECT_EQ(streamed.stats.content_hash, expected.stats.content_hash);
  EXPECT_EQ(second.batches, must(run_epoch(*indexed)).batches);
}

TEST_F(StreamTest, IsClosedAtAnyMoment) {
  for (int i = 0; i < 12; ++i) {
    auto loader = load();
    std::thread closing([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      loader->close();
    });
    const Result<Seen> seen = run_epoch(*loader);
    EXPECT_TRUE(seen || seen.error().code() == ErrorCode::kInvalidArgument)
        << seen.error().message();
    closing.join();
  }
}

TEST_F(StreamTest, IsAskedFromOtherThreadsMeanwhile) {
  auto loader = load();
  std::atomic<bool> has_ended = false;
  std::thread asking([&] {
    while (!has_ended) {
      EXPECT_FALSE(loader->state().empty());
      (void)loader->stats();
      (void)loader->totals();
      (void)loader->remaining();
      Share share;
      share.in_flight = 1 + loader->totals().reads % 8;
      loader->set_share(share);
    }
  });
  const Seen seen = must(run_epoch(*loader));
  has_ended = true;
  asking.join();
  EXPECT_GT(seen.stats.samples, 0u);
}

TEST_F(StreamTest, IsLeftInTheMiddle) {
  for (int batches = 1; batches < 6; ++batches) {
    auto loader = load();
    const Loader::Iteration iteration = must(loader->begin());
    for (int i = 0; i < batches; ++i) {
      EXPECT_FALSE(must(loader->next(iteration)).is_end());
    }
  }
}

// --- with a cache -----------------------------------------------------------

TEST_F(StreamTest, WhatIsIndexedIsKept) {
  options_.epochs = 3;
  auto plain = load();
  std::vector<Seen> expected;
  for (int i = 0; i < 3; ++i) expected.push_back(must(run_epoch(*plain)));
  std::filesystem::remove_all(world_.root() / "cache");
  options_.cache = CacheOptions{.ram_bytes = 2 * kMiB};

  auto loader = load();
  ASSERT_FALSE(loader->length()) << "it has a catalogue";
  for (int i = 0; i < 3; ++i) {
    const Seen seen = must(run_epoch(*loader));
    EXPECT_EQ(seen.batches, expected[i].batches);
    EXPECT_EQ(seen.stats.content_hash, expected[i].stats.content_hash);
    if (i == 0) continue;
    EXPECT_EQ(loader->stats().back().misses, 0u);
    EXPECT_EQ(loader->stats().back().ram_hits, kShards);
  }
  loader->close();
  EXPECT_EQ(loader->metrics()->value(Metric::kCacheRamBytes), 0);
}

TEST_F(StreamTest, IsClosedAtAnyMomentWithACache) {
  options_.cache = CacheOptions{.ram_bytes = kMiB / 2,
                                .disk = (world_.root() / "records").string(),
                                .disk_limit_bytes = kMiB};
  for (int i = 0; i < 12; ++i) {
    std::filesystem::remove_all(world_.root() / "cache");
    auto loader = load();
    std::jthread closing([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      loader->close();
    });
    const Result<Seen> seen = run_epoch(*loader);
    EXPECT_TRUE(seen || seen.error().code() == ErrorCode::kInvalidArgument)
        << seen.error().message();
  }
}

// --- several ranks, each a thread here --------------------------------------

TEST_F(StreamTest, RanksGetTheirSlicesOfOneOrder) {
  std::vector<Seen> seen(kRanks);
  {
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto loader = load(rank);
        seen[rank] = must(run_epoch(*loader));
      });
    }
  }

  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto indexed = load(rank);  // By the catalogue that was kept.
    ASSERT_TRUE(indexed->length());
    const Seen expected = must(run_epoch(*indexed));
    EXPECT_EQ(seen[rank].batches, expected.batches);
    EXPECT_EQ(seen[rank].stats.content_hash, expected.stats.content_hash);
  }
}

TEST_F(StreamTest, ARankThatIsClosedIsTakenOverFrom) {
  for (std::uint32_t steps = 0; steps < 6; ++steps) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      loaders.push_back(load(rank));
    }
    std::vector<Seen> seen(kRanks);
    {
      std::vector<std::jthread> ranks;
      for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
        ranks.emplace_back(
            [&, rank] { seen[rank] = must(run_epoch(*loaders[rank])); });
      }
      // The first to come scans.
      const Loader::Iteration iteration = must(loaders[0]->begin());
      for (std::uint32_t i = 0; i < steps; ++i) {
        EXPECT_FALSE(must(loaders[0]->next(iteration)).is_end());
      }
      loaders[0].reset();
    }
    const auto indexed = load(1);
    EXPECT_EQ(seen[1].batches, must(run_epoch(*indexed)).batches);
    EXPECT_EQ(seen[1].batches.size(), seen[3].batches.size());
    std::filesystem::remove_all(world_.root() / "cache");
  }
}

TEST_F(StreamTest, RanksAreClosedAtAnyMoment) {
  for (int i = 0; i < 12; ++i) {
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        const auto loader = load(rank);
        std::jthread closing([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(i * rank));
          loader->close();
        });
        const Result<Seen> seen = run_epoch(*loader);
        EXPECT_TRUE(seen || seen.error().code() == ErrorCode::kInvalidArgument)
            << seen.error().message();
      });
    }
  }
}

}  // namespace
}  // namespace leat
