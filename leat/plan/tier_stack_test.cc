#include "leat/plan/tier_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace leat {
namespace {

constexpr std::uint64_t kSamplesPerBlock = 10;
constexpr std::uint64_t kBlocks = 200;
constexpr std::uint64_t kSamples = kBlocks * kSamplesPerBlock;
constexpr std::uint64_t kEpochs = 6;

std::shared_ptr<const BlockMap> tier_shards() {
  std::vector<SampleSpan> spans;
  spans.reserve(kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t at = i % kSamplesPerBlock;
    spans.push_back(
        {ObjectIndex{static_cast<std::uint32_t>(i / kSamplesPerBlock)}, at,
         at + 1});
  }
  return std::make_shared<const BlockMap>(
      BlockMap::cut(spans, kSamplesPerBlock));
}

/// A block, when an epoch meets its first sample.
struct BlockRead {
  std::uint64_t block = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
};

struct BlockJob {
  explicit BlockJob(std::uint32_t window_blocks)
      : order{.shuffle = Shuffle::kBlock,
              .seed = 3,
              .window_blocks = window_blocks},
        blocks(tier_shards()) {
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const EpochOrder of(kSamples, order, blocks, epoch);
      std::vector<bool> is_read(kBlocks, false);
      for (std::uint64_t p = 0; p < kSamples; ++p) {
        const std::uint64_t block = blocks->block_of(of.at(p));
        if (!is_read[block]) reads.push_back({block, epoch, p});
        is_read[block] = true;
      }
    }
  }

  TierStack stack(const std::vector<std::uint64_t>& capacities) const {
    std::vector<std::unique_ptr<CachePolicy>> tiers;
    tiers.reserve(capacities.size());
    for (const std::uint64_t capacity : capacities) {
      tiers.push_back(*make_cache_policy({.samples = kBlocks,
                                          .capacity = capacity,
                                          .unit = CapacityUnit::kItems}));
    }
    return {std::move(tiers),
            *NextUse::make({.samples = kSamples,
                            .order = order,
                            .blocks = blocks,
                            .global_batch = 7,
                            .ranks = {0, 1, 1},
                            .end_epoch = kEpochs}),
            sizes, /*holds_blocks=*/true};
  }

  std::uint64_t hits(const std::vector<std::uint64_t>& capacities) const {
    TierStack asked = stack(capacities);
    return static_cast<std::uint64_t>(
        std::ranges::count_if(reads, [&](const BlockRead& read) {
          return asked.read({read.block}, read.epoch, read.position) !=
                 TierStack::kMiss;
        }));
  }

  /// Hits of Belady's policy, which looks for the next use among the reads.
  std::uint64_t most_hits(std::size_t capacity) const {
    std::map<std::uint64_t, std::size_t> held;  // And when it is read next.
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      std::size_t next = i + 1;
      while (next < reads.size() && reads[next].block != reads[i].block) ++next;
      const bool is_hit = held.contains(reads[i].block);
      found += is_hit ? 1 : 0;
      if (!is_hit && held.size() == capacity) {
        const auto furthest = std::ranges::max_element(
            held, {}, [](const auto& entry) { return entry.second; });
        if (next >= furthest->second) continue;
        held.erase(furthest);
      }
      held[reads[i].block] = next;
    }
    return found;
  }

  /// When the window begins that reads the block next, behind read `from`.
  AccessTime next_window(std::uint64_t block, std::size_t from) const {
    const auto next = std::find_if(
        reads.begin() + static_cast<std::ptrdiff_t>(from) + 1, reads.end(),
        [&](const auto& r) { return r.block == block; });
    if (next == reads.end()) return kNever;
    const EpochOrder of(kSamples, order, blocks, next->epoch);
    return next->epoch * kSamples + of.window_of(block).begin;
  }

  OrderOptions order;
  std::shared_ptr<const BlockMap> blocks;
  std::vector<BlockRead> reads;
  std::vector<std::uint64_t> sizes = {1};
};

TEST(TierStackTest, OfBlocksWithWindowsOfTheirOwnHitsWhatBeladyCan) {
  const BlockJob job(1);

  for (const std::uint64_t capacity : {1ULL, 20ULL, 100ULL, 200ULL}) {
    EXPECT_EQ(job.hits({capacity}), job.most_hits(capacity)) << capacity;
    EXPECT_EQ(job.hits({capacity, 40}), job.most_hits(capacity + 40))
        << capacity;
  }
}

// Blocks of one window are told by its begin: which of them is read first is
// not known, and costs a hit here and there.
TEST(TierStackTest, OfBlocksMixedInWindowsHitsAlmostWhatBeladyCan) {
  const BlockJob job(8);

  for (const std::uint64_t capacity : {20ULL, 60ULL, 100ULL}) {
    const auto best = static_cast<double>(job.most_hits(capacity));
    EXPECT_NEAR(static_cast<double>(job.hits({capacity})), best, best / 50)
        << capacity;
    EXPECT_NEAR(static_cast<double>(job.hits({capacity / 4, capacity * 3 / 4})),
                best, best / 50)
        << capacity;
  }
}

// In the middle of a window: some of its blocks have been read, and are wanted
// again an epoch later; the others are wanted now.
TEST(TierStackTest, OfBlocksWhatIsWantedFurthestGoesFirst) {
  const BlockJob job(50);
  const std::size_t until = kBlocks + kBlocks * 5 / 8;  // In the second epoch.
  TierStack stack = job.stack({100, 50});
  for (std::size_t i = 0; i <= until; ++i) {
    const BlockRead& read = job.reads[i];
    (void)stack.read({read.block}, read.epoch, read.position);
  }
  std::vector<std::uint64_t> held;
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    if (stack.holds({block})) held.push_back(block);
  }
  ASSERT_EQ(held.size(), 150u);

  stack.set_capacity(0, 20);

  AccessTime last_first = 0;   // In the fastest tier.
  AccessTime last_second = 0;  // In the second tier.
  AccessTime soonest_gone = kNever;
  for (const std::uint64_t block : held) {
    const AccessTime next = job.next_window(block, until);
    if (stack.tier(0).holds({block})) {
      last_first = std::max(last_first, next);
    } else if (stack.tier(1).holds({block})) {
      last_second = std::max(last_second, next);
    } else {
      soonest_gone = std::min(soonest_gone, next);
    }
  }
  EXPECT_EQ(stack.tier(0).held_items(), 20u);
  EXPECT_EQ(stack.tier(1).held_items(), 50u);
  EXPECT_LE(last_second, soonest_gone);
  EXPECT_LE(last_first, soonest_gone);
}

}  // namespace
}  // namespace leat
