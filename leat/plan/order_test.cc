#include "leat/plan/order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "leat/plan/steps.h"

namespace leat {
namespace {

using Ids = std::vector<std::uint64_t>;

constexpr std::uint64_t kOrderPiece = 1000;

/// Shards of `per_shard` samples of 100 bytes: ten samples in a block.
std::shared_ptr<const BlockMap> order_shards(std::uint64_t samples,
                                             std::uint64_t per_shard) {
  std::vector<SampleSpan> spans;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t at = i % per_shard * 100;
    spans.push_back(
        {ObjectIndex{static_cast<std::uint32_t>(i / per_shard)}, at, at + 100});
  }
  return std::make_shared<const BlockMap>(BlockMap::cut(spans, kOrderPiece));
}

std::vector<std::uint64_t> all_of(const EpochOrder& order) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t p = 0; p < order.size(); ++p) {
    ids.push_back(order.at(p).value);
  }
  return ids;
}

void expect_bijection(const EpochOrder& order) {
  std::vector<std::uint64_t> ids = all_of(order);
  for (std::uint64_t p = 0; p < ids.size(); ++p) {
    ASSERT_EQ(order.position_of(SampleId{ids[p]}), p);
  }
  std::sort(ids.begin(), ids.end());
  for (std::uint64_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i);
}

TEST(EpochOrderTest, WithoutShuffleTheOrderIsTheCatalogues) {
  const EpochOrder order(5, {.shuffle = Shuffle::kNone}, nullptr, 3);

  EXPECT_EQ(all_of(order), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  expect_bijection(order);
}

TEST(EpochOrderTest, EveryShuffleIsABijection) {
  for (const std::uint64_t n : {1, 2, 10, 95, 1000, 5000}) {
    for (const Shuffle shuffle :
         {Shuffle::kFull, Shuffle::kBlock, Shuffle::kStream}) {
      expect_bijection(EpochOrder(n, {.shuffle = shuffle, .seed = 5},
                                  order_shards(n, 95), /*epoch=*/2));
    }
  }
}

RC_GTEST_PROP(EpochOrderProperty, BlockShuffleIsABijectionOfAnyShards,
              (std::uint64_t seed, std::uint64_t epoch)) {
  const auto n = *rc::gen::inRange<std::uint64_t>(1, 3000);
  const auto per_shard = *rc::gen::inRange<std::uint64_t>(1, 300);
  const auto window = *rc::gen::inRange<std::uint32_t>(1, 40);
  const EpochOrder order(
      n, {.shuffle = Shuffle::kBlock, .seed = seed, .window_blocks = window},
      order_shards(n, per_shard), epoch);

  std::vector<std::uint64_t> ids = all_of(order);
  for (std::uint64_t p = 0; p < n; ++p) {
    RC_ASSERT(order.position_of(SampleId{ids[p]}) == p);
  }
  std::sort(ids.begin(), ids.end());
  for (std::uint64_t i = 0; i < n; ++i) RC_ASSERT(ids[i] == i);
}

TEST(EpochOrderTest, EmptyEpochsAreFine) {
  for (const Shuffle shuffle :
       {Shuffle::kNone, Shuffle::kFull, Shuffle::kBlock, Shuffle::kStream}) {
    EXPECT_EQ(EpochOrder(0, {.shuffle = shuffle}, order_shards(0, 1), 0).size(),
              0u);
  }
}

TEST(EpochOrderTest, SeedsAndEpochsDiffer) {
  const auto blocks = order_shards(2000, 100);
  for (const Shuffle shuffle :
       {Shuffle::kFull, Shuffle::kBlock, Shuffle::kStream}) {
    std::set<std::vector<std::uint64_t>> orders;
    for (const std::uint64_t seed : {0, 1, 2}) {
      for (const std::uint64_t epoch : {0, 1, 2}) {
        orders.insert(all_of(EpochOrder(
            2000, {.shuffle = shuffle, .seed = seed}, blocks, epoch)));
      }
    }
    EXPECT_EQ(orders.size(), 9u);
  }
}

// Reading by pieces relies on this: a block's samples all fall within one
// window, and at most `window_blocks` blocks are in use between its ends.
TEST(EpochOrderTest, ABlockIsReadWithinOneWindow) {
  const auto blocks = order_shards(2000, 95);
  constexpr std::uint32_t kWindow = 4;
  const EpochOrder order(
      2000, {.shuffle = Shuffle::kBlock, .seed = 1, .window_blocks = kWindow},
      blocks, 0);

  std::map<std::uint64_t, std::uint64_t> left;  // Samples of blocks in use.
  std::set<std::uint64_t> done;
  for (std::uint64_t p = 0; p < order.size(); ++p) {
    const std::uint64_t block = blocks->block_of(order.at(p));
    ASSERT_FALSE(done.contains(block)) << "position " << p;
    left.try_emplace(
        block, blocks->first_sample(block + 1) - blocks->first_sample(block));
    ASSERT_LE(left.size(), kWindow) << "position " << p;
    if (--left[block] == 0) {
      left.erase(block);
      done.insert(block);
    }
  }
  EXPECT_EQ(done.size(), blocks->blocks());
}

TEST(EpochOrderTest, AStreamMixesWindowsWhereTheyLie) {
  const EpochOrder order(
      500, {.shuffle = Shuffle::kStream, .seed = 1, .window_blocks = 4},
      order_shards(500, 100), 0);

  for (std::uint64_t begin = 0; begin < 500; begin += 40) {
    const std::uint64_t end = std::min<std::uint64_t>(begin + 40, 500);
    std::vector<std::uint64_t> window;
    for (std::uint64_t p = begin; p < end; ++p) {
      window.push_back(order.at(p).value);
    }
    EXPECT_FALSE(std::is_sorted(window.begin(), window.end()));
    EXPECT_EQ(order.window_of(begin / 10).begin, begin);
    EXPECT_EQ(order.window_of(begin / 10).end, end);
    std::sort(window.begin(), window.end());
    EXPECT_EQ(window.front(), begin);
    EXPECT_EQ(window.back(), end - 1);
  }
}

// An epoch can begin before all shards are known because of this: the shards
// from one on have the windows that they have in the whole.
RC_GTEST_PROP(EpochOrderProperty, APartHasTheWindowsOfTheWhole,
              (std::uint64_t seed)) {
  const auto n = *rc::gen::inRange<std::uint64_t>(1, 2000);
  const auto per_shard = *rc::gen::inRange<std::uint64_t>(1, 300);
  const auto window = *rc::gen::inRange<std::uint32_t>(1, 12);
  const OrderOptions options{
      .shuffle = Shuffle::kStream, .seed = seed, .window_blocks = window};
  const auto all = order_shards(n, per_shard);
  const EpochOrder whole(n, options, all, 3);
  const auto first_shard =
      *rc::gen::inRange<std::uint64_t>(0, (n - 1) / per_shard + 1);
  const std::uint64_t skipped = first_shard * per_shard;
  OrderOptions of_part = options;
  of_part.first_block = all->block_of(SampleId{skipped});

  const EpochOrder part(n - skipped, of_part,
                        order_shards(n - skipped, per_shard), 3);

  for (std::uint64_t p = 0; p < part.size(); ++p) {
    const std::uint64_t block = all->block_of(whole.at(skipped + p));
    if (whole.window_of(block).begin < skipped) continue;  // Cut in two.
    RC_ASSERT(skipped + part.at(p).value == whole.at(skipped + p).value);
    RC_ASSERT(part.position_of(part.at(p)) == p);
  }
}

// Over epochs, the first block of the order and the first sample of a window
// are any of them equally often.
TEST(EpochOrderTest, BlocksAndSamplesInAWindowAreMixedUniformly) {
  const auto blocks = order_shards(400, 100);  // 40 blocks of 10 samples.
  constexpr int kEpochs = 4000;
  std::vector<int> by_block(40, 0);
  std::vector<int> by_offset(10, 0);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const EpochOrder order(
        400, {.shuffle = Shuffle::kBlock, .seed = 8, .window_blocks = 3},
        blocks, epoch);
    const SampleId first = order.at(0);
    ++by_block[blocks->block_of(first)];
    ++by_offset[first.value % 10];
  }

  const auto chi_square = [](const std::vector<int>& counts) {
    const double expected = kEpochs / static_cast<double>(counts.size());
    double sum = 0;
    for (const int count : counts) {
      sum += (count - expected) * (count - expected) / expected;
    }
    return sum;
  };
  EXPECT_LT(chi_square(by_block), 39 + 5 * std::sqrt(2 * 39.0));
  EXPECT_LT(chi_square(by_offset), 9 + 5 * std::sqrt(2 * 9.0));
}

TEST(EpochOrderTest, AnswersManyThreadsAlike) {
  const auto blocks = order_shards(3000, 95);
  const EpochOrder order(
      3000, {.shuffle = Shuffle::kBlock, .seed = 1, .window_blocks = 2}, blocks,
      0);
  const std::vector<std::uint64_t> expected = all_of(order);

  std::vector<std::vector<std::uint64_t>> seen(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(seen.size());
    for (auto& mine : seen) {
      threads.emplace_back([&mine, &order] { mine = all_of(order); });
    }
  }

  for (const auto& mine : seen) EXPECT_EQ(mine, expected);
}

/// The samples of all ranks, step by step, in the order of steps and ranks.
std::vector<std::uint64_t> union_of_ranks(const EpochOrder& order,
                                          std::uint64_t start,
                                          std::uint64_t global_batch,
                                          std::uint32_t world) {
  std::vector<Steps> ranks;
  for (std::uint32_t r = 0; r < world; ++r) {
    auto steps = Steps::make({.samples = order.size(),
                              .start = start,
                              .global_batch = global_batch,
                              .rank = {r, world},
                              .tail = Tail::kKeep});
    EXPECT_TRUE(steps) << steps.error().message();
    ranks.push_back(*steps);
  }
  std::vector<std::uint64_t> ids;
  for (std::uint64_t step = 0; step < ranks[0].count(); ++step) {
    for (const Steps& rank : ranks) {
      const StepSlice slice = rank.slice(step);
      for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
        ids.push_back(order.at(p).value);
      }
    }
  }
  return ids;
}

TEST(EpochOrderTest, TheUnionOfRanksIsTheOrderForEveryWorldSize) {
  constexpr std::uint64_t kSamples = 101;
  for (const Shuffle shuffle : {Shuffle::kFull, Shuffle::kBlock}) {
    const EpochOrder order(kSamples, {.shuffle = shuffle, .seed = 3},
                           order_shards(kSamples, 30), 1);
    const std::vector<std::uint64_t> expected = all_of(order);
    for (std::uint32_t world = 1; world <= kSamples + 3; ++world) {
      EXPECT_EQ(union_of_ranks(order, 0, world, world), expected);
      EXPECT_EQ(union_of_ranks(order, 0, 3 * world, world), expected);
    }
  }
}

// A state names a position: any global batch and world size that go on from it
// get exactly the rest.
TEST(EpochOrderTest, AResumeElsewhereCoversExactlyTheRest) {
  constexpr std::uint64_t kSamples = 240;
  const EpochOrder order(kSamples, {.seed = 3}, nullptr, 0);
  const std::vector<std::uint64_t> all = all_of(order);
  const Steps before =
      *Steps::make({.samples = kSamples, .global_batch = 48, .rank = {1, 3}});
  for (std::uint64_t done = 0; done < before.count(); ++done) {
    const std::uint64_t position = before.position_after(done);
    const std::vector<std::uint64_t> rest(
        all.begin() + static_cast<std::ptrdiff_t>(position), all.end());
    for (const std::uint32_t world : {1, 2, 5, 8, 300}) {
      for (const std::uint64_t per_rank : {1, 7}) {
        EXPECT_EQ(union_of_ranks(order, position, per_rank * world, world),
                  rest);
      }
    }
  }
}

// As for Permutation: a saved state counts on these.
TEST(EpochOrderTest, TheOrderOfAKeyNeverChanges) {
  const auto first = [](const EpochOrder& order) {
    std::vector<std::uint64_t> ids = all_of(order);
    ids.resize(6);
    return ids;
  };
  const auto blocks = order_shards(2000, 100);

  EXPECT_EQ(first(EpochOrder(2000, {.seed = 1}, nullptr, 2)),
            (Ids{1216, 1917, 1982, 308, 1327, 619}));
  EXPECT_EQ(first(EpochOrder(2000, {.shuffle = Shuffle::kBlock, .seed = 1},
                             blocks, 2)),
            (Ids{476, 1217, 48, 1999, 867, 298}));
}

}  // namespace
}  // namespace leat
