#include "leat/dataset/derive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using CatalogueRef = std::shared_ptr<const Catalogue>;

CatalogueRef open(Buffer file) {
  return std::make_shared<const Catalogue>(*Catalogue::open(std::move(file)));
}

/// `count` samples of an image, which every second one lacks, and a mask in a
/// shard of all masks; each with a number, a weight and a caption.
CatalogueRef pictures(std::size_t count, EtagKind etags = EtagKind::kHttp,
                      Layout layout = Layout::kObjects) {
  CatalogueWriter writer(layout, etags);
  writer.set_classes({"cat", "dog"});
  const std::size_t image = writer.add_field({"image", FieldKind::kBytes});
  const std::size_t mask = writer.add_field({"mask", FieldKind::kBytes});
  const std::size_t number = writer.add_field({"number", FieldKind::kInt64});
  const std::size_t weight = writer.add_field({"weight", FieldKind::kFloat64});
  const std::size_t caption = writer.add_field({"caption", FieldKind::kString});
  const ObjectIndex masks =
      writer.add_object({.key = "masks", .etag = "m", .size_bytes = 1000});
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "image" + std::to_string(i);
    const ObjectIndex object =
        writer.add_object({.key = key, .etag = "\"e\"", .size_bytes = 10 + i});
    writer.add_sample(key);
    if (i % 2 == 0) writer.set_range(image, {object, 0, 10 + i});
    writer.set_range(mask, {masks, i * 10, 5});
    writer.set_int64(number, static_cast<std::int64_t>(i) - 1);
    writer.set_float64(weight, 0.5 * static_cast<double>(i));
    writer.set_string(caption, "picture " + std::to_string(i));
  }
  return open(*std::move(writer).finish());
}

TEST(DeriveTest, SelectionKeepsAllThatASampleHas) {
  const CatalogueRef all = pictures(6);

  const CatalogueRef some =
      open(*select_samples(*all, std::array<SampleId, 3>{{{4}, {1}, {4}}}));

  ASSERT_EQ(some->samples(), 3u);
  EXPECT_EQ(some->classes(), all->classes());
  EXPECT_EQ(some->fields(), all->fields());
  EXPECT_EQ(some->key({0}), "image4");
  EXPECT_EQ(some->key({1}), "image1");
  EXPECT_EQ(some->key({2}), "image4");
  const ByteRange image = some->range(0, {2});
  EXPECT_EQ(some->object(image.object).key, "image4");
  EXPECT_EQ(some->object(image.object).etag, "\"e\"");
  EXPECT_EQ(image.length_bytes, 14u);
  EXPECT_TRUE(some->range(0, {1}).is_missing());
  EXPECT_EQ(some->range(1, {1}).offset, 10u);
  EXPECT_EQ(some->int64(2, {1}), 0);
  EXPECT_EQ(some->float64(3, {0}), 2.0);
  EXPECT_EQ(some->string(4, {0}), "picture 4");
}

TEST(DeriveTest, SelectionLeavesOutObjectsThatNobodyNeeds) {
  const CatalogueRef some =
      open(*select_samples(*pictures(6), std::array<SampleId, 1>{{{2}}}));

  EXPECT_EQ(some->objects(), 2u);  // The image and the masks.
}

TEST(DeriveTest, OrderIsPartOfWhichDataItIs) {
  const CatalogueRef all = pictures(3);
  const std::array<SampleId, 3> same{{{0}, {1}, {2}}};
  const std::array<SampleId, 3> turned{{{2}, {1}, {0}}};

  const Hash128 digest = open(*select_samples(*all, same))->digest();

  EXPECT_EQ(open(*select_samples(*all, same))->digest(), digest);
  EXPECT_NE(open(*select_samples(*all, turned))->digest(), digest);
}

TEST(DeriveTest, PartsAreJoinedOneAfterTheOther) {
  const std::array<CatalogueRef, 2> parts{pictures(2), pictures(3)};

  const CatalogueRef joined = open(*join_catalogues(parts));

  ASSERT_EQ(joined->samples(), 5u);
  EXPECT_EQ(joined->key({2}), "image0");
  EXPECT_EQ(joined->object(joined->range(0, {0}).object).key, "0/image0");
  EXPECT_EQ(joined->object(joined->range(0, {2}).object).key, "1/image0");
  EXPECT_EQ(joined->object(joined->range(1, {4}).object).key, "1/masks");
  EXPECT_EQ(joined->etag_kind(), EtagKind::kHttp);
  EXPECT_EQ(joined->layout(), Layout::kObjects);
}

TEST(DeriveTest, EtagsOfDifferentStoresAreNotCompared) {
  const std::array<CatalogueRef, 2> parts{pictures(2, EtagKind::kHttp),
                                          pictures(2, EtagKind::kFile)};

  EXPECT_EQ(open(*join_catalogues(parts))->etag_kind(), EtagKind::kNone);
}

TEST(DeriveTest, ShardsStayShardsIfAllPartsAre) {
  const CatalogueRef shards = pictures(2, EtagKind::kNone, Layout::kShards);
  const std::array<CatalogueRef, 2> same{shards, shards};
  const std::array<CatalogueRef, 2> mixed{shards, pictures(2)};

  EXPECT_EQ(open(*join_catalogues(same))->layout(), Layout::kShards);
  EXPECT_EQ(open(*join_catalogues(mixed))->layout(), Layout::kObjects);
}

TEST(DeriveTest, PartsWithOtherFieldsAreRefused) {
  CatalogueWriter writer(Layout::kObjects, EtagKind::kNone);
  writer.add_field({"audio", FieldKind::kBytes});
  const std::array<CatalogueRef, 2> parts{pictures(1),
                                          open(*std::move(writer).finish())};

  const Result<Buffer> joined = join_catalogues(parts);

  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(joined.error().message(), HasSubstr("(audio)"));
}

TEST(DeriveTest, SharesHaveTheirSizesAndNeverMove) {
  const std::array<double, 3> ends{0.7, 0.9, 1.0};
  std::array<int, 3> counts{};
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t share = share_of("key" + std::to_string(i), 1, ends);
    ASSERT_LT(share, 3u);
    ++counts[share];
  }

  EXPECT_NEAR(counts[0], 14'000, 300);
  EXPECT_NEAR(counts[1], 4'000, 300);
  EXPECT_NEAR(counts[2], 2'000, 300);
  // Part of the format of a split: what it gives must never change.
  EXPECT_EQ(share_of("cat/1.jpg", 0, ends), 0u);
  EXPECT_EQ(share_of("cat/2.jpg", 0, ends), 0u);
}

}  // namespace
}  // namespace leat
