#include "leat/plan/lane_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace leat {
namespace {

using Ids = std::vector<std::uint64_t>;

/// Pieces of this many samples each.
std::shared_ptr<const BlockMap> pieces_of(
    const std::vector<std::uint64_t>& sizes) {
  std::vector<SampleSpan> spans;
  for (std::uint32_t object = 0; object < sizes.size(); ++object) {
    for (std::uint64_t i = 0; i < sizes[object]; ++i) {
      spans.push_back({ObjectIndex{object}, i, i + 1});
    }
  }
  return std::make_shared<const BlockMap>(
      BlockMap::cut(spans, /*piece_bytes=*/std::uint64_t{1} << 40));
}

std::shared_ptr<const BlockMap> equal_pieces(std::uint64_t count,
                                             std::uint64_t samples) {
  return pieces_of(std::vector<std::uint64_t>(count, samples));
}

TEST(LaneShapeTest, TakesAsManyLanesAsPiecesAndMemoryAllow) {
  const auto shape = [](std::uint64_t pieces, std::uint64_t mixed) {
    const LaneShape chosen = LaneShape::of(pieces, mixed);
    return std::pair(chosen.lanes, chosen.pieces_a_lane);
  };
  using Shape = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(shape(4096, 64), Shape(64, 1));
  EXPECT_EQ(shape(4096, 256), Shape(256, 1));
  EXPECT_EQ(shape(4096, 1024), Shape(256, 4));
  EXPECT_EQ(shape(4096, 40), Shape(32, 1));
  EXPECT_EQ(shape(100, 64), Shape(32, 2));
  EXPECT_EQ(shape(3, 64), Shape(1, 64));
  EXPECT_EQ(shape(1, 1), Shape(1, 1));
}

RC_GTEST_PROP(LaneOrderProperty, IsABijectionOfAnyPieces,
              (std::uint64_t seed, std::uint64_t epoch)) {
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(
          rc::gen::inRange<std::uint64_t>(1, 60)));
  const auto mixed = *rc::gen::inRange<std::uint64_t>(1, 100);
  const auto blocks = pieces_of(sizes);
  const LaneOrder order(blocks, mixed, seed, epoch);

  std::vector<bool> is_taken(blocks->samples(), false);
  for (std::uint64_t p = 0; p < blocks->samples(); ++p) {
    const std::uint64_t sample = order.at(p);
    RC_ASSERT(sample < blocks->samples());
    RC_ASSERT(!is_taken[sample]);
    is_taken[sample] = true;
    RC_ASSERT(order.position_of(sample) == p);
    const PositionRun run = order.window_of(blocks->block_of({sample}));
    RC_ASSERT(run.begin <= p);
    RC_ASSERT(p < run.end);
  }
}

// Reading by pieces relies on this: at most this many pieces are in use at
// once.
TEST(LaneOrderTest, MixesNoMorePiecesThanAllowed) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 300; ++i) sizes.push_back(20 + i * i % 17);
  for (const std::uint64_t mixed : {1, 2, 7, 16, 40, 64, 200}) {
    const auto blocks = pieces_of(sizes);
    const LaneOrder order(blocks, mixed, 1, 0);
    std::map<std::uint64_t, std::uint64_t> left;
    std::set<std::uint64_t> done;
    for (std::uint64_t p = 0; p < blocks->samples(); ++p) {
      const std::uint64_t block = blocks->block_of({order.at(p)});
      ASSERT_FALSE(done.contains(block)) << "position " << p;
      left.try_emplace(block, sizes[block]);
      ASSERT_LE(left.size(), mixed) << "position " << p;
      if (--left[block] == 0) {
        left.erase(block);
        done.insert(block);
      }
    }
    EXPECT_EQ(done.size(), blocks->blocks());
  }
}

// A batch has samples of all lanes, so of as many pieces.
TEST(LaneOrderTest, ABatchHasSamplesOfAllLanes) {
  const auto blocks = equal_pieces(64 * 8, 32);
  const LaneOrder order(blocks, /*mixed_blocks=*/64, 3, 1);
  for (std::uint64_t p = 0; p + 64 <= blocks->samples(); p += 64) {
    std::set<std::uint64_t> pieces;
    std::set<std::uint32_t> lanes;
    for (std::uint64_t i = p; i < p + 64; ++i) {
      pieces.insert(blocks->block_of({order.at(i)}));
      lanes.insert(order.place_of(i) >> 24);
    }
    ASSERT_EQ(pieces.size(), 64u) << p;
    ASSERT_EQ(lanes.size(), 64u) << p;
  }
}

// Positions of a piece have neighbouring places, in the order of its samples.
TEST(LaneOrderTest, PlacesFollowTheSamplesOfAPiece) {
  const auto blocks = equal_pieces(256, 64);
  const LaneOrder order(blocks, /*mixed_blocks=*/64, 3, 1);
  for (std::uint64_t block = 0; block < 256; ++block) {
    std::uint32_t last = 0;
    for (std::uint64_t id = blocks->first_sample(block);
         id < blocks->first_sample(block + 1); ++id) {
      const std::uint32_t place = order.place_of(order.position_of(id));
      ASSERT_GE(place, last);
      last = place;
    }
  }
}

TEST(LaneOrderTest, TheOrderOfAKeyNeverChanges) {
  const auto first = [](const LaneOrder& order) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t p = 0; p < 6; ++p) ids.push_back(order.at(p));
    return ids;
  };
  EXPECT_EQ(first(LaneOrder(equal_pieces(10, 100), 64, 1, 2)),
            (Ids{698, 290, 973, 378, 616, 144}));
  EXPECT_EQ(first(LaneOrder(equal_pieces(600, 100), 256, 1, 2)),
            (Ids{54562, 57595, 19963, 49059, 21800, 44918}));
}

}  // namespace
}  // namespace leat
