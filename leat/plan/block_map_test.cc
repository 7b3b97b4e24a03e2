#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "leat/plan/order.h"

namespace leat {
namespace {

constexpr std::uint64_t kPiece = 1000;

/// `count` samples of `bytes` each, side by side in one object.
void append_object(std::vector<SampleSpan>& samples, std::uint32_t object,
                   std::uint64_t count, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < count; ++i) {
    samples.push_back({ObjectIndex{object}, i * bytes, (i + 1) * bytes});
  }
}

std::vector<std::uint64_t> firsts(const BlockMap& map) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t b = 0; b <= map.blocks(); ++b) {
    all.push_back(map.first_sample(b));
  }
  return all;
}

using Firsts = std::vector<std::uint64_t>;

TEST(BlockMapTest, CutsAtTheEndsOfObjects) {
  std::vector<SampleSpan> samples;
  append_object(samples, 0, 3, 100);
  append_object(samples, 1, 2, 100);

  EXPECT_EQ(firsts(BlockMap::cut(samples, kPiece)), (Firsts{0, 3, 5}));
}

TEST(BlockMapTest, CutsALargeObjectEvenlyIntoWholePieces) {
  std::vector<SampleSpan> samples;
  append_object(samples, 0, 29, 100);  // 2,900 bytes: two pieces, not three.

  EXPECT_EQ(firsts(BlockMap::cut(samples, kPiece)), (Firsts{0, 15, 29}));
}

TEST(BlockMapTest, ASampleLargerThanAPieceIsAPieceOfItsOwn) {
  std::vector<SampleSpan> samples;
  append_object(samples, 0, 3, 5000);

  EXPECT_EQ(firsts(BlockMap::cut(samples, kPiece)), (Firsts{0, 1, 2, 3}));
}

TEST(BlockMapTest, ASampleWithoutBytesGoesWithTheOneBefore) {
  std::vector<SampleSpan> samples(1);  // The very first has none either.
  append_object(samples, 4, 2, 100);
  samples.emplace_back();
  append_object(samples, 5, 1, 100);

  EXPECT_EQ(firsts(BlockMap::cut(samples, kPiece)), (Firsts{0, 1, 4, 5}));
}

TEST(BlockMapTest, AnEmptySampleAtTheEndIsNoPieceOfItsOwn) {
  const std::vector<SampleSpan> samples = {{ObjectIndex{0}, 512, 600},
                                           {ObjectIndex{0}, 1112, 1112}};

  EXPECT_EQ(firsts(BlockMap::cut(samples, kPiece)), (Firsts{0, 2}));
}

TEST(BlockMapTest, EmptySamplesAndNoSamplesAreFine) {
  std::vector<SampleSpan> samples;
  append_object(samples, 0, 3, 0);

  EXPECT_EQ(firsts(BlockMap::cut(samples, kPiece)), (Firsts{0, 3}));
  EXPECT_EQ(firsts(BlockMap::cut({}, kPiece)), (Firsts{0}));
}

TEST(BlockMapTest, FindsTheBlockOfEverySample) {
  std::vector<SampleSpan> samples;
  append_object(samples, 0, 29, 100);
  append_object(samples, 1, 1, 100);
  const BlockMap map = BlockMap::cut(samples, kPiece);

  EXPECT_EQ(map.block_of(SampleId{0}), 0u);
  EXPECT_EQ(map.block_of(SampleId{14}), 0u);
  EXPECT_EQ(map.block_of(SampleId{15}), 1u);
  EXPECT_EQ(map.block_of(SampleId{29}), 2u);
}

// Holds for any spans: every sample in one block, blocks never empty, at most
// floor(bytes / piece) of each object or one, none across two objects.
RC_GTEST_PROP(BlockMapProperty, CoversEverySampleInFewEnoughPieces, ()) {
  const auto objects = *rc::gen::inRange<std::uint32_t>(1, 6);
  std::vector<SampleSpan> samples;
  std::vector<std::uint64_t> first_of_object;
  std::uint64_t most_blocks = 0;
  for (std::uint32_t object = 0; object < objects; ++object) {
    first_of_object.push_back(samples.size());
    const auto lengths =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(
            rc::gen::inRange<std::uint64_t>(0, 3000)));
    std::uint64_t offset = 512;
    for (const std::uint64_t length : lengths) {
      samples.push_back({ObjectIndex{object}, offset, offset + length});
      offset += length + 512;
    }
    most_blocks +=
        std::max<std::uint64_t>((samples.back().end - 512) / kPiece, 1);
  }

  const BlockMap map = BlockMap::cut(samples, kPiece);

  RC_ASSERT(map.samples() == samples.size());
  RC_ASSERT(map.blocks() <= most_blocks);
  const Firsts all = firsts(map);
  RC_ASSERT(std::adjacent_find(all.begin(), all.end(),
                               std::greater_equal<>()) == all.end());
  for (const std::uint64_t first : first_of_object) {
    RC_ASSERT(std::binary_search(all.begin(), all.end(), first));
  }
}

}  // namespace
}  // namespace leat
