#include "leat/plan/lane_dealing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace leat {
namespace {

constexpr std::uint64_t kLanePiece = BlockMap::kDefaultPieceBytes;
constexpr std::uint64_t kGap = 1 << 20;

/// Shards whose samples have about the same length, give or take a part.
struct Shards {
  std::vector<SampleSpan> spans;
  std::shared_ptr<const BlockMap> blocks;
  std::uint64_t bytes = 0;

  Shards(std::uint32_t shards, std::uint64_t shard_bytes,
         std::uint64_t sample_bytes, double spread) {
    std::mt19937 random(5);  // NOLINT: the same data each time.
    std::normal_distribution<double> normal;
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      std::uint64_t at = 0;
      while (at < shard_bytes) {
        const auto size = static_cast<std::uint64_t>(
            std::max(0.1, 1 + spread * normal(random)) *
            static_cast<double>(sample_bytes));
        spans.push_back({ObjectIndex{shard}, at, at + size});
        at += size;
      }
      bytes += at;
    }
    blocks = std::make_shared<const BlockMap>(BlockMap::cut(spans, kLanePiece));
  }

  EpochOrder order(std::uint32_t mixed = 64) const {
    return EpochOrder(
        spans.size(),
        {.shuffle = Shuffle::kBlock, .seed = 1, .window_blocks = mixed}, blocks,
        0);
  }
};

Steps lane_steps(std::uint64_t samples, std::uint64_t global_batch, Rank rank,
                 std::uint64_t start = 0, Tail tail = Tail::kKeep) {
  return *Steps::make({.samples = samples,
                       .start = start,
                       .global_batch = global_batch,
                       .rank = rank,
                       .tail = tail});
}

RC_GTEST_PROP(LaneDealingProperty, EveryStepIsDealtOnceInEqualShares, ()) {
  const Shards shards(*rc::gen::inRange<std::uint32_t>(1, 5), 100'000,
                      *rc::gen::inRange<std::uint64_t>(100, 3000), 0.2);
  const auto blocks = std::make_shared<const BlockMap>(BlockMap::cut(
      shards.spans, *rc::gen::inRange<std::uint64_t>(1000, 20000)));
  const EpochOrder order(
      shards.spans.size(),
      {.shuffle = Shuffle::kBlock,
       .seed = *rc::gen::arbitrary<std::uint64_t>(),
       .window_blocks = *rc::gen::inRange<std::uint32_t>(1, 100)},
      blocks, 2);
  const auto world = *rc::gen::inRange<std::uint32_t>(1, 9);
  const std::uint64_t batch = world * *rc::gen::inRange<std::uint64_t>(1, 9);
  const auto start = *rc::gen::inRange<std::uint64_t>(0, order.size());
  const Tail tail = *rc::gen::element(Tail::kKeep, Tail::kPad);
  std::vector<LaneDealing> ranks;
  std::vector<LaneDealing> asked_first;
  std::vector<Steps> ranks_steps;
  for (std::uint32_t r = 0; r < world; ++r) {
    const Steps steps =
        lane_steps(order.size(), batch, {r, world}, start, tail);
    ranks.emplace_back(order, steps);
    asked_first.emplace_back(order, steps);
    ranks_steps.push_back(steps);
  }
  const Steps steps = lane_steps(order.size(), batch, {0, world}, start, tail);
  const auto is_padding = [&](std::uint64_t p) { return p >= order.size(); };

  for (std::uint64_t step = 0; step < steps.count(); ++step) {
    const StepSlice all = steps.all_ranks(step);
    std::vector<std::uint64_t> dealt;
    for (std::uint32_t r = 0; r < world; ++r) {
      const std::vector<std::uint64_t> mine = ranks[r].positions_of(step);
      RC_ASSERT(std::ranges::is_sorted(mine));
      RC_ASSERT(mine.size() == ranks_steps[r].size(step));
      for (const std::uint64_t p : mine) {
        if (p < order.size()) RC_ASSERT(asked_first[r].is_ours(p));
      }
      // Padding goes to the last ranks, in a step that is dealt in runs too.
      RC_ASSERT(
          std::ranges::count_if(mine, is_padding) ==
          std::ranges::count_if(ranks_steps[r].positions(step), is_padding));
      dealt.insert(dealt.end(), mine.begin(), mine.end());
    }
    std::ranges::sort(dealt);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t p = all.begin; p < all.end; ++p) expected.push_back(p);
    RC_ASSERT(dealt == expected);
  }
}

struct Reads {
  double gets = 0;   ///< Over those that the data needs in pieces.
  double bytes = 0;  ///< Over the bytes that are delivered.
};

/// The reads of all ranks: each reads the runs of its samples in each piece,
/// joined where little lies between them.
Reads reads_of(const Shards& shards, std::uint32_t mixed, std::uint32_t world,
               std::uint64_t each) {
  const EpochOrder order = shards.order(mixed);
  const std::uint64_t samples = order.size();
  std::vector<std::uint32_t> rank_of(samples, world);
  for (std::uint32_t r = 0; r < world; ++r) {
    const Steps steps =
        lane_steps(samples, each * world, {r, world}, 0, Tail::kKeep);
    LaneDealing dealing(order, steps);
    for (std::uint64_t step = 0; step < steps.count(); ++step) {
      for (const std::uint64_t p : dealing.positions_of(step)) {
        rank_of[order.at(p).value] = r;
      }
    }
  }
  std::uint64_t gets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t delivered = 0;
  for (std::uint64_t block = 0; block < shards.blocks->blocks(); ++block) {
    std::map<std::uint32_t, std::uint64_t> end_of;
    for (std::uint64_t id = shards.blocks->first_sample(block);
         id < shards.blocks->first_sample(block + 1); ++id) {
      const std::uint32_t rank = rank_of[id];
      if (rank == world) continue;
      const SampleSpan& span = shards.spans[id];
      const auto found = end_of.find(rank);
      const bool is_new =
          found == end_of.end() || span.begin - found->second >= kGap;
      gets += is_new ? 1 : 0;
      bytes += is_new ? span.end - span.begin : span.end - found->second;
      delivered += span.end - span.begin;
      end_of[rank] = span.end;
    }
  }
  return {.gets = static_cast<double>(gets) /
                  (static_cast<double>(delivered) / kLanePiece),
          .bytes = static_cast<double>(bytes) / static_cast<double>(delivered)};
}

// Ranks read pieces nearly whole, and nearly none twice: 24 shards of 64 MB.
// The samples of the last step, which is not whole, are no stray reads either.
TEST(LaneDealingTest, RanksShareFewPiecesOfFewShards) {
  struct Case {
    std::uint64_t sample_bytes;
    double spread;
    double most_gets;
  };
  for (const auto& [sample_bytes, spread, most_gets] :
       {Case{23'000, 0, 1.12}, Case{100'000, 0, 1.22}, Case{23'000, 0.12, 1.35},
        Case{100'000, 0.12, 1.3}}) {
    const Shards shards(24, 64'000'000, sample_bytes, spread);
    for (const std::uint32_t world : {1, 2, 3, 4, 7, 8, 16}) {
      const Reads reads = reads_of(shards, 64, world, 32);
      EXPECT_LE(reads.gets, most_gets) << sample_bytes << " B, " << world;
      EXPECT_LE(reads.bytes, 1.1) << sample_bytes << " B, ranks: " << world;
    }
  }
}

// As many ranks as lanes, or a divisor of them, share nothing but what lies at
// the ends of lanes; others share pieces at the ends of their parts.
TEST(LaneDealingTest, ManyRanksShareFewPiecesOfManyShards) {
  const Shards shards(140, 240'000'000, 400'000, 0.12);
  struct Case {
    std::uint32_t mixed;
    std::uint32_t world;
    double most_gets;
    double most_bytes;
  };
  for (const auto& [mixed, world, most_gets, most_bytes] :
       {Case{64, 8, 1.1, 1.03}, Case{64, 64, 1.1, 1.05},
        Case{256, 3, 1.25, 1.05}, Case{256, 256, 1.3, 1.1}}) {
    const Reads reads = reads_of(shards, mixed, world, 8);
    EXPECT_LE(reads.gets, most_gets) << "ranks: " << world;
    EXPECT_LE(reads.bytes, most_bytes) << "ranks: " << world;
  }
}

}  // namespace
}  // namespace leat
