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
std::shared_ptr<const Catalogue> catalogue_of(
    Layout layout, std::uint64_t objects, std::uint64_t samples,
    std::uint64_t image_bytes = kImage) {
  CatalogueWriter writer(layout, EtagKind::kNone);
  const std::size_t image = writer.add_field({"image", FieldKind::kBytes});
  const std::size_t text = writer.add_field({"text", FieldKind::kBytes});
  writer.add_field({"label", FieldKind::kInt64});
  for (std::uint64_t i = 0; i < objects; ++i) {
    const std::string key = std::to_string(i);
    const ObjectIndex object = writer.add_object(
        {.key = key, .size_bytes = samples * (image_bytes + kText)});
    for (std::uint64_t j = 0; j < samples; ++j) {
      const std::uint64_t at = j * (image_bytes + kText);
      writer.add_sample(key + "-" + std::to_string(j));
      writer.set_range(image, {object, at, image_bytes});
      writer.set_range(text, {object, at + image_bytes, kText});
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

TEST(ReadSizesTest, RanksReadPiecesOfShards) {
  SweepOptions job{.ranks = 2};
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

// The bytes that a job holds do not grow with the length of its pieces.
TEST(ReadSizesTest, FewerLongReadsAreInFlightThanShortOnes) {
  const auto in_flight = [](Layout layout, std::uint64_t image_bytes,
                            bool has_pieces) {
    return usual_in_flight(catalogue_of(layout, 9, 1, image_bytes).get(),
                           has_pieces, 128);
  };
  EXPECT_EQ(in_flight(Layout::kObjects, 5000, false), 128u);
  EXPECT_EQ(in_flight(Layout::kObjects, 8 << 20, false), 16u);
  EXPECT_EQ(in_flight(Layout::kObjects, 100 << 20, false), 16u);  // In parts.
  EXPECT_EQ(in_flight(Layout::kShards, 10 << 20, true), 16u);
  EXPECT_EQ(in_flight(Layout::kShards, 10 << 20, false), 128u);
  EXPECT_EQ(usual_in_flight(nullptr, true, 128), 128u);
}

TEST(ReadSizesTest, FewerLongPiecesAreMixedThanShortOnes) {
  const auto window_of = [](std::uint64_t image_bytes) {
    return usual_window(Shuffle::kBlock,
                        catalogue_of(Layout::kShards, 9, 1, image_bytes).get());
  };
  EXPECT_EQ(window_of(5000), 64u);
  EXPECT_EQ(window_of(15 << 20), 64u);
  EXPECT_EQ(window_of(100 << 20), 5u);
  EXPECT_EQ(window_of(std::uint64_t{1} << 30), 4u);
  EXPECT_EQ(usual_window(Shuffle::kStream, nullptr), 16u);
}

}  // namespace
}  // namespace leat
