#include "leat/engine/known_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

constexpr std::uint64_t kFirstOffset = 512;
constexpr std::uint64_t kMember = 100;

/// Shards of three samples each, one block a shard, in windows of two blocks.
class KnownShardsTest : public ::testing::Test {
 protected:
  KnownShardsTest() {
    for (int i = 0; i < 5; ++i) {
      shards_.push_back(
          {.shard = {.key = std::to_string(i) + ".tar", .size_bytes = 10'240}});
    }
  }

  static ScannedShard scanned(std::size_t shard, const std::string& field) {
    ScannedShard found;
    for (std::uint64_t i = 0; i < 3; ++i) {
      found.members.push_back({.name = std::to_string(shard) + "_" +
                                       std::to_string(i) + "." + field,
                               .offset = kFirstOffset + 1024 * i,
                               .size_bytes = kMember});
    }
    return found;
  }

  void learn(std::size_t count, const std::string& field = "jpg") {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t shard = known_.size();
      Result<ShardFindings> found = find_in(
          shards_[shard], scanned(shard, field), classes_, EtagKind::kNone);
      ASSERT_TRUE(found) << found.error().message();
      known_.add(*std::move(found), true);
    }
  }

  std::vector<ShardToScan> shards_;
  const std::vector<std::string> classes_;
  KnownShards known_{shards_, classes_, EtagKind::kNone, 2};
};

TEST_F(KnownShardsTest, AWindowIsFinalOnceAllItsBlocksAreKnown) {
  learn(1);
  EXPECT_EQ(known_.next_end(0, 1, true), std::nullopt);
  learn(1);
  EXPECT_THAT(known_.next_end(0, 1, true), Optional(Eq(6u)));
  learn(1);
  EXPECT_THAT(known_.next_end(0, 1, false), Optional(Eq(6u)));
  EXPECT_EQ(known_.next_end(4, 3, false), std::nullopt) << "two are left";
}

TEST_F(KnownShardsTest, TheFirstPartIsAsSmallAsCanBe) {
  learn(4);
  EXPECT_THAT(known_.next_end(0, 6, true), Optional(Eq(6u)));
  EXPECT_THAT(known_.next_end(0, 7, true), Optional(Eq(12u)));
  EXPECT_THAT(known_.next_end(0, 6, false), Optional(Eq(12u)));
}

TEST_F(KnownShardsTest, APositionLiesInTheWindowOfItsBlock) {
  learn(5);
  EXPECT_EQ(known_.window_block(0), 0u);
  EXPECT_EQ(known_.window_block(5), 0u);
  EXPECT_EQ(known_.window_block(6), 2u);
  EXPECT_EQ(known_.window_block(15), 4u) << "behind all that is known";
}

TEST_F(KnownShardsTest, APartHasTheShardsOfItsWindows) {
  learn(4);
  const Result<StreamPart> part = known_.make_part(2, 12);
  ASSERT_TRUE(part) << part.error().message();
  EXPECT_EQ(part->first_sample, 6u);
  EXPECT_EQ(part->first_block, 2u);
  EXPECT_EQ(part->end, 6u);
  EXPECT_EQ(part->catalogue->samples(), 6u);
  EXPECT_FALSE(part->is_last);
}

TEST_F(KnownShardsTest, FieldsComeInOrderOfTheirFirstAppearance) {
  learn(2, "jpg");
  learn(1, "cls");
  EXPECT_EQ(known_.fields_up_to(1), 1u);
  EXPECT_EQ(known_.fields_up_to(2), 2u);
  EXPECT_EQ(known_.fields()[1].name, "cls");
  EXPECT_EQ(known_.last_shard(6), 1u);
  EXPECT_EQ(known_.last_shard(7), 2u);
}

TEST_F(KnownShardsTest, WindowsBeginWhereTheirFirstMemberDoes) {
  learn(5);
  EXPECT_THAT(
      known_.places_of_windows(0, 8),
      ElementsAre(AheadPlace{0, kFirstOffset}, AheadPlace{2, kFirstOffset}));
  EXPECT_EQ(known_.place_of(4), (AheadPlace{4, kFirstOffset}));
  EXPECT_EQ(known_.place_of(5), (AheadPlace{5, 0}));
}

}  // namespace
}  // namespace leat
