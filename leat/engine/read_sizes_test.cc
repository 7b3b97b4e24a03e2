#include "leat/engine/read_sizes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "leat/cache/segment_format.h"
#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

constexpr std::uint64_t kImage = 5000;
constexpr std::uint64_t kText = 10;

/// Objects of `samples` samples each, with an image and a text, side by side.
std::shared_ptr<const Catalogue> catalogue_of(Layout layout,
                                              std::uint64_t objects,
                                              std::uint64_t samples) {
  CatalogueWriter writer(layout, EtagKind::kNone);
  const std::size_t image = writer.add_field({"image", FieldKind::kBytes});
  const std::size_t text = writer.add_field({"text", FieldKind::kBytes});
  writer.add_field({"label", FieldKind::kInt64});
  for (std::uint64_t i = 0; i < objects; ++i) {
    const std::string key = std::to_string(i);
    const ObjectIndex object = writer.add_object(
        {.key = key, .size_bytes = samples * (kImage + kText)});
    for (std::uint64_t j = 0; j < samples; ++j) {
      const std::uint64_t at = j * (kImage + kText);
      writer.add_sample(key + "-" + std::to_string(j));
      writer.set_range(image, {object, at, kImage});
      writer.set_range(text, {object, at + kImage, kText});
    }
  }
  return std::make_shared<Catalogue>(
      *Catalogue::open(*std::move(writer).finish()));
}

TEST(ReadSizesTest, ARangeTakesPagesAndEntries) {
  const ReadSize read = read_size_of({ObjectIndex{0}, 100, kText});
  EXPECT_EQ(read.bytes, kText);
  EXPECT_EQ(read.cost, record_cost(kText));
  EXPECT_EQ(read.requests, 1u);
  EXPECT_EQ(read_size_of({}).requests, 0u);
}

TEST(ReadSizesTest, ALongRangeIsReadInParts) {
  const ReadSize read = read_size_of({ObjectIndex{0}, 0, (24 << 20) + 1});

  EXPECT_EQ(read.requests, 3u);
  EXPECT_EQ(read.cost,
            2 * record_cost((8 << 20) + 1) + record_cost((8 << 20) - 1));
}

TEST(ReadSizesTest, ObjectsAreReadFieldByField) {
  SweepOptions job{.ranks = 2};
  read_as_usual(catalogue_of(Layout::kObjects, 6, 1), job);

  EXPECT_EQ(job.samples, 6u);
  EXPECT_EQ(job.unit, ReadUnit::kSample);
  EXPECT_EQ(job.order.shuffle, Shuffle::kFull);
  EXPECT_EQ(job.tail, Tail::kDrop);
  const ReadSize read = job.read_size(3);
  EXPECT_EQ(read.bytes, kImage + kText);
  EXPECT_EQ(read.cost, record_cost(kImage) + record_cost(kText));
  EXPECT_EQ(read.requests, 2u);
}

TEST(ReadSizesTest, OneRankReadsPiecesOfShards) {
  SweepOptions job{.ranks = 1};
  read_as_usual(catalogue_of(Layout::kShards, 3, 4), job);

  EXPECT_EQ(job.unit, ReadUnit::kBlock);
  EXPECT_EQ(job.order.shuffle, Shuffle::kBlock);
  EXPECT_EQ(job.objects, 3u);
  ASSERT_EQ(job.blocks->blocks(), 3u);
  const ReadSize read = job.read_size(1);
  EXPECT_EQ(read.bytes, 4 * (kImage + kText));
  EXPECT_EQ(read.cost, record_cost(4 * (kImage + kText)));
  EXPECT_EQ(read.requests, 1u);
}

TEST(ReadSizesTest, SeveralRanksReadSamplesOfShards) {
  SweepOptions job{.ranks = 2};
  read_as_usual(catalogue_of(Layout::kShards, 3, 4), job);

  EXPECT_EQ(job.unit, ReadUnit::kSample);
  EXPECT_EQ(job.order.shuffle, Shuffle::kBlock);
  EXPECT_EQ(job.read_size(11).requests, 2u);
}

}  // namespace
}  // namespace leat
