#include "leat/plan/shard_homes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/dataset/catalogue_writer.h"
#include "leat/plan/dealing.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

constexpr std::uint64_t kMember = 1000;

/// Shards with a sample for each of `samples`.
Catalogue shards_of(const std::vector<std::uint64_t>& samples) {
  CatalogueWriter writer(Layout::kShards, EtagKind::kNone);
  const std::size_t field =
      writer.add_field({.name = "bin", .kind = FieldKind::kBytes});
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const ObjectIndex object = writer.add_object(
        {.key = std::to_string(i) + ".tar", .size_bytes = 2'000'000});
    for (std::uint64_t k = 0; k < samples[i]; ++k) {
      writer.add_sample(std::to_string(i) + "_" + std::to_string(k));
      writer.set_range(field, {object, 512 + k * 2 * kMember, kMember});
    }
  }
  return *Catalogue::open(*std::move(writer).finish());
}

std::shared_ptr<const BlockMap> pieces_of_all(const Catalogue& catalogue) {
  return std::make_shared<const BlockMap>(BlockMap::build(catalogue, 8000));
}

TEST(ShardHomesTest, EachRankHasEveryWthShard) {
  const Catalogue catalogue = shards_of({20, 0, 3, 7});
  const ShardHomes homes(catalogue, pieces_of_all(catalogue), 0, 3);
  for (const std::uint64_t sample : {0u, 19u}) {
    EXPECT_EQ(homes.of({sample}), 0u);
  }
  for (const std::uint64_t sample : {20u, 22u}) {
    EXPECT_EQ(homes.of({sample}), 2u);  // The empty one counts.
  }
  for (const std::uint64_t sample : {23u, 29u}) {
    EXPECT_EQ(homes.of({sample}), 0u);
  }
}

TEST(ShardHomesTest, APartHasTheHomesOfTheWhole) {
  const Catalogue whole = shards_of({20, 5, 3, 7});
  const Catalogue part = shards_of({3, 7});
  const ShardHomes of_whole(whole, pieces_of_all(whole), 0, 3);
  const ShardHomes of_part(part, pieces_of_all(part), 2, 3);
  for (std::uint64_t sample = 0; sample < part.samples(); ++sample) {
    EXPECT_EQ(of_part.of({sample}), of_whole.of({25 + sample}));
  }
}

// The bytes that a rank reads beside its own shards are the samples that a step
// has too many of for their rank.
TEST(ShardHomesTest, MostSamplesOfAStepAreDealtToTheRankOfTheirShard) {
  constexpr std::uint32_t kRanks = 8;
  const Catalogue catalogue = shards_of(std::vector<std::uint64_t>(16, 512));
  const auto blocks = pieces_of_all(catalogue);
  const ShardHomes homes(catalogue, blocks, 0, kRanks);
  const EpochOrder order(
      catalogue.samples(),
      {.shuffle = Shuffle::kStream, .seed = 1, .window_blocks = 1 << 20},
      blocks, 0);
  std::uint64_t at_home = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const Steps steps = *Steps::make({.samples = catalogue.samples(),
                                      .global_batch = 32 * kRanks,
                                      .rank = {rank, kRanks}});
    for (std::uint64_t k = 0; k < steps.count(); ++k) {
      const auto mine = positions_at_homes(
          steps, k, order, [&](SampleId sample) { return homes.of(sample); });
      EXPECT_EQ(mine.size(), 32u);
      for (const std::uint64_t p : mine) {
        at_home += homes.of(order.at(p)) == rank ? 1 : 0;
      }
    }
  }
  EXPECT_GT(at_home, catalogue.samples() * 92 / 100);
  EXPECT_LT(at_home, catalogue.samples());
}

}  // namespace
}  // namespace leat
