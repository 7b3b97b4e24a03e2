#include "leat/cache/record_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "leat/cache/file_ops.h"
#include "leat/cache/segment_files.h"

namespace leat {
namespace {

RecordKey map_key(std::uint64_t n) { return {.high = n, .low = ~n}; }

/// A record of one page, at the `page`-th.
RecordEntry put_of(std::uint64_t key, std::uint64_t page) {
  return {.kind = RecordEntry::Kind::kPut,
          .key = map_key(key),
          .source = 1,
          .offset = page * kPageBytes,
          .length_bytes = 100,
          .body_crc = 5};
}
RecordEntry drop(std::uint64_t key, std::uint64_t page) {
  RecordEntry entry = put_of(key, page);
  entry.kind = RecordEntry::Kind::kDrop;
  return entry;
}

class RecordMapTest : public ::testing::Test {
 protected:
  /// The number of a new segment.
  std::uint32_t add(bool is_mine) {
    auto file = files_->create({.id = ++made_, .owner = 2, .entry_count = 64});
    auto held =
        std::make_shared<HeldSegment>(*Segment::open(*std::move(file), ops_));
    held->is_mine = is_mine;
    return map_.add(std::move(held));
  }

  static constexpr std::uint64_t kCost = record_cost(100);

  SystemFileOps ops_;
  std::unique_ptr<SegmentFiles> files_ = open_segment_memory(ops_);
  Metrics metrics_;
  RecordMap map_{Metric::kCacheRamBytes, &metrics_};
  std::uint64_t made_ = 0;
};

TEST_F(RecordMapTest, KnowsWhatSegmentsSay) {
  const std::uint32_t other = add(/*is_mine=*/false);
  map_.hear(other, put_of(1, 3));
  map_.hear(other, put_of(2, 4));
  map_.hear(other, drop(1, 3));

  EXPECT_FALSE(map_.holds(map_key(1)));
  ASSERT_TRUE(map_.find(map_key(2)));
  EXPECT_EQ(map_.find(map_key(2))->place.page, 4u);
  EXPECT_TRUE(map_.is_at(map_key(2), other, put_of(2, 4)));
  EXPECT_FALSE(map_.is_at(map_key(2), other, put_of(2, 5)));
  EXPECT_EQ(map_.at(other)->alive_bytes, kCost);
  EXPECT_EQ(map_.used_bytes(), 0u);  // Others' records are not ours to drop.
}

TEST_F(RecordMapTest, ADropOfAnotherCopyForgetsNothing) {
  const std::uint32_t one = add(/*is_mine=*/false);
  const std::uint32_t two = add(/*is_mine=*/false);
  map_.hear(one, put_of(1, 3));
  map_.hear(two, put_of(1, 8));

  map_.hear(two, drop(1, 8));
  EXPECT_TRUE(map_.holds(map_key(1)));

  map_.hear(one, drop(1, 3));
  EXPECT_FALSE(map_.holds(map_key(1)));
}

TEST_F(RecordMapTest, AnotherPlaceIsFoundOnceTheSegmentOfTheOneIsForgotten) {
  for (const bool is_first_forgotten : {true, false}) {
    const std::uint32_t one = add(/*is_mine=*/false);
    const std::uint32_t two = add(/*is_mine=*/false);
    map_.hear(one, put_of(1, 3));
    map_.hear(two, put_of(1, 8));
    const std::uint32_t gone = is_first_forgotten ? one : two;
    const std::uint32_t left = is_first_forgotten ? two : one;

    map_.forget_segment(gone);

    ASSERT_TRUE(map_.holds(map_key(1)));
    EXPECT_EQ(map_.find(map_key(1))->place.segment, left);
    EXPECT_EQ(map_.records(), 1u);
    map_.forget_segment(left);
    EXPECT_FALSE(map_.holds(map_key(1)));
  }
}

TEST_F(RecordMapTest, OfARecordInTwoPlacesOursIsCountedAndTheOtherIsLeft) {
  const std::uint32_t mine = add(/*is_mine=*/true);
  const std::uint32_t other = add(/*is_mine=*/false);
  map_.wrote(mine, put_of(1, 3));
  map_.hear(other, put_of(1, 8));

  EXPECT_EQ(map_.claim(map_key(1)), true);
  EXPECT_EQ(map_.take(map_key(1))->place.segment, mine);

  EXPECT_EQ(map_.used_bytes(), 0u);
  EXPECT_EQ(map_.claim(map_key(1)), false);  // The other writer's.
  EXPECT_FALSE(map_.take(map_key(1)));
  EXPECT_EQ(map_.at(other)->alive_bytes, kCost);
}

TEST_F(RecordMapTest, ABadPlaceGivesWayToAnother) {
  const std::uint32_t one = add(/*is_mine=*/false);
  const std::uint32_t two = add(/*is_mine=*/false);
  map_.hear(one, put_of(1, 3));
  map_.hear(two, put_of(1, 8));

  map_.give_up(map_key(1), map_.find(map_key(1))->place);
  ASSERT_TRUE(map_.holds(map_key(1)));
  map_.give_up(map_key(1), map_.find(map_key(1))->place);

  EXPECT_FALSE(map_.holds(map_key(1)));
}

TEST_F(RecordMapTest, OfASegmentThatIsTakenOverOnlyWhatIsCountedIsFound) {
  const std::uint32_t other = add(/*is_mine=*/false);
  const std::uint32_t left = add(/*is_mine=*/false);
  map_.hear(left, put_of(1, 3));
  map_.hear(other, put_of(1, 8));
  ASSERT_TRUE(map_.is_at(map_key(1), other, put_of(1, 8)));

  map_.count_as_mine(left, /*bytes=*/0, /*of_own_source=*/0);
  map_.forget_segment(other);

  EXPECT_FALSE(map_.holds(map_key(1)));  // Or its room would be counted twice.
  EXPECT_EQ(map_.used_bytes(), 0u);
}

TEST_F(RecordMapTest, OnlyOursAreUsedClaimedAndTaken) {
  const std::uint32_t mine = add(/*is_mine=*/true);
  const std::uint32_t other = add(/*is_mine=*/false);
  map_.wrote(mine, put_of(1, 3));
  map_.hear(other, put_of(2, 4));

  EXPECT_EQ(map_.used_bytes(), kCost);
  EXPECT_EQ(metrics_.value(Metric::kCacheRamBytes),
            static_cast<std::int64_t>(kCost));
  EXPECT_EQ(map_.claim(map_key(1)), true);
  EXPECT_EQ(map_.claim(map_key(2)), false);
  EXPECT_EQ(map_.claim(map_key(3)), std::nullopt);
  EXPECT_TRUE(map_.is_claimed(map_key(1)));

  EXPECT_FALSE(map_.take(map_key(2)));
  EXPECT_EQ(map_.take(map_key(1))->place.page, 3u);
  EXPECT_FALSE(map_.holds(map_key(1)));
  EXPECT_EQ(map_.used_bytes(), 0u);
}

TEST_F(RecordMapTest, WhatIsTakenOverCountsAndWaitsToBeClaimed) {
  const std::uint32_t left = add(/*is_mine=*/false);
  for (const std::uint64_t n : {1, 2, 3, 4}) map_.hear(left, put_of(n, n));

  map_.count_as_mine(left, 4 * kCost, /*of_own_source=*/4);

  EXPECT_EQ(map_.used_bytes(), 4 * kCost);
  EXPECT_FALSE(map_.is_claimed(map_key(1)));
  EXPECT_FALSE(map_.are_claimed_by(2));
  EXPECT_EQ(map_.claim(map_key(1)), true);
  EXPECT_TRUE(map_.are_claimed_by(2));  // One of four, half of its part.
  EXPECT_FALSE(map_.are_claimed_by(1));
}

TEST_F(RecordMapTest, ABadRecordIsGivenUpOnceUnlessItMoved) {
  const std::uint32_t mine = add(/*is_mine=*/true);
  map_.wrote(mine, put_of(1, 3));
  const RecordPlace before = map_.find(map_key(1))->place;
  RecordPlace after = before;
  after.page = 9;
  map_.moved(map_key(1), before, after);

  map_.give_up(map_key(1), before);  // A reader was late.
  EXPECT_TRUE(map_.holds(map_key(1)));

  map_.give_up(map_key(1), after);
  map_.give_up(map_key(1), after);
  EXPECT_FALSE(map_.holds(map_key(1)));
  EXPECT_EQ(map_.used_bytes(), 0u);
  EXPECT_EQ(metrics_.value(Metric::kCacheBadRecords), 1);
  EXPECT_EQ(map_.take_given_up().size(), 1u);
  EXPECT_TRUE(map_.take_given_up().empty());
}

TEST_F(RecordMapTest, ASegmentGoesWithItsRecordsAndItsNumberIsUsedAgain) {
  const std::uint32_t mine = add(/*is_mine=*/true);
  const std::uint32_t other = add(/*is_mine=*/false);
  map_.wrote(mine, put_of(1, 3));
  map_.hear(other, put_of(2, 4));

  map_.forget_segment(mine);

  EXPECT_FALSE(map_.holds(map_key(1)));
  EXPECT_TRUE(map_.holds(map_key(2)));
  EXPECT_EQ(map_.used_bytes(), 0u);
  EXPECT_FALSE(map_.has_mine());
  EXPECT_EQ(map_.segments(), 1u);
  EXPECT_EQ(add(/*is_mine=*/true), mine);
}

}  // namespace
}  // namespace leat
