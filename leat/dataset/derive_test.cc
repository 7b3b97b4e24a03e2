#include "leat/dataset/derive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "leat/dataset/catalogue_writer.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using CatalogueRef = std::shared_ptr<const Catalogue>;

CatalogueRef open_ref(Buffer file) {
  return std::make_shared<const Catalogue>(*Catalogue::open(std::move(file)));
}

CatalogueRef of(Result<Catalogue> joined) {
  return std::make_shared<const Catalogue>(*std::move(joined));
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
  return open_ref(*std::move(writer).finish());
}

TEST(DeriveTest, SelectionKeepsAllThatASampleHas) {
  const CatalogueRef all = pictures(6);

  const CatalogueRef some =
      open_ref(*select_samples(*all, std::array<SampleId, 3>{{{4}, {1}, {4}}}));

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

/// Samples "0", "1", … with these labels.
CatalogueRef labelled(const std::vector<std::string>& classes,
                      const std::vector<std::int64_t>& labels) {
  CatalogueWriter writer(Layout::kObjects, EtagKind::kNone);
  writer.set_classes(classes);
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  const std::size_t label = writer.add_field({"label", FieldKind::kInt64});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string key = std::to_string(i);
    const ObjectIndex object =
        writer.add_object({.key = key, .etag = "", .size_bytes = 10});
    writer.add_sample(key);
    writer.set_range(data, {object, 0, 10});
    writer.set_int64(label, labels[i]);
  }
  return open_ref(*std::move(writer).finish());
}

TEST(DeriveTest, LabelsKeepTheNamesOfTheirClasses) {
  const CatalogueRef before = labelled({"bee", "cat"}, {1, 0, 1});
  const CatalogueRef now = labelled({"ant", "bee", "cat", "dog"}, {2, 1, 2});

  const CatalogueRef made = open_ref(*with_classes(*now, {"bee", "cat"}));

  EXPECT_EQ(made->classes(), before->classes());
  EXPECT_EQ(made->int64(1, {0}), 1);
  EXPECT_EQ(made->int64(1, {1}), 0);
  EXPECT_EQ(made->digest(), before->digest());
}

TEST(DeriveTest, LabelsOfOtherClassesAreRefused) {
  const CatalogueRef all = labelled({"ant", "bee"}, {0, 1});
  const CatalogueRef none = labelled({"ant", "bee"}, {-1});

  EXPECT_THAT(with_classes(*all, {"ant"}).error().message(),
              HasSubstr("'1' is of the class 'bee'"));
  EXPECT_THAT(with_classes(*none, {"ant", "bee"}).error().message(),
              HasSubstr("'0' has the label -1"));
}

TEST(DeriveTest, SelectionLeavesOutObjectsThatNobodyNeeds) {
  const CatalogueRef some =
      open_ref(*select_samples(*pictures(6), std::array<SampleId, 1>{{{2}}}));

  EXPECT_EQ(some->objects(), 2u);  // The image and the masks.
}

TEST(DeriveTest, OrderIsPartOfWhichDataItIs) {
  const CatalogueRef all = pictures(3);
  const std::array<SampleId, 3> same{{{0}, {1}, {2}}};
  const std::array<SampleId, 3> turned{{{2}, {1}, {0}}};

  const Hash128 digest = open_ref(*select_samples(*all, same))->digest();

  EXPECT_EQ(open_ref(*select_samples(*all, same))->digest(), digest);
  EXPECT_NE(open_ref(*select_samples(*all, turned))->digest(), digest);
}

TEST(DeriveTest, PartsAreJoinedOneAfterTheOther) {
  const std::array<CatalogueRef, 2> parts{pictures(2), pictures(3)};

  const CatalogueRef joined = of(join_catalogues(parts));

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

  EXPECT_EQ(of(join_catalogues(parts))->etag_kind(), EtagKind::kNone);
}

TEST(DeriveTest, ShardsStayShardsIfAllPartsAre) {
  const CatalogueRef shards = pictures(2, EtagKind::kNone, Layout::kShards);
  const std::array<CatalogueRef, 2> same{shards, shards};
  const std::array<CatalogueRef, 2> mixed{shards, pictures(2)};

  EXPECT_EQ(of(join_catalogues(same))->layout(), Layout::kShards);
  EXPECT_EQ(of(join_catalogues(mixed))->layout(), Layout::kObjects);
}

/// A sample for each class, labelled with it, and one with the last label
/// again.
CatalogueRef labelled(const std::vector<std::string>& classes,
                      bool has_label_first = false, std::int64_t extra = 0) {
  CatalogueWriter writer(Layout::kObjects, EtagKind::kNone);
  writer.set_classes(classes);
  std::size_t label = 0;
  if (has_label_first) label = writer.add_field({"label", FieldKind::kInt64});
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  if (!has_label_first) label = writer.add_field({"label", FieldKind::kInt64});
  for (std::size_t i = 0; i < std::max<std::size_t>(classes.size(), 1); ++i) {
    const std::string key = "object" + std::to_string(i);
    const ObjectIndex object = writer.add_object({.key = key, .size_bytes = 1});
    writer.add_sample(key);
    writer.set_range(data, {object, 0, 1});
    writer.set_int64(label, static_cast<std::int64_t>(i) + extra);
  }
  return open_ref(*std::move(writer).finish());
}

TEST(DeriveTest, ClassesAreMergedByName) {
  const std::array<CatalogueRef, 2> folders{labelled({"bee", "dog"}),
                                            labelled({"ant", "dog"})};
  const std::array<CatalogueRef, 2> ordered{labelled({"dog", "bee"}),
                                            labelled({"ant", "dog"})};
  const std::array<CatalogueRef, 2> same{labelled({"dog", "bee"}),
                                         labelled({"dog", "bee"})};
  const auto labels_of = [](const CatalogueRef& catalogue) {
    std::vector<std::int64_t> labels;
    for (SampleId i; i.value < catalogue->samples(); ++i.value) {
      labels.push_back(catalogue->int64(1, i));
    }
    return labels;
  };
  using Names = std::vector<std::string>;
  using Numbers = std::vector<std::int64_t>;

  const CatalogueRef sorted = of(join_catalogues(folders));
  const CatalogueRef appearing = of(join_catalogues(ordered));
  const CatalogueRef kept = of(join_catalogues(same));

  EXPECT_EQ(sorted->classes(), (Names{"ant", "bee", "dog"}));
  EXPECT_EQ(labels_of(sorted), (Numbers{1, 2, 0, 2}));
  EXPECT_EQ(appearing->classes(), (Names{"dog", "bee", "ant"}));
  EXPECT_EQ(labels_of(appearing), (Numbers{0, 1, 2, 0}));
  EXPECT_EQ(kept->classes(), (Names{"dog", "bee"}));
  EXPECT_EQ(labels_of(kept), (Numbers{0, 1, 0, 1}));
}

TEST(DeriveTest, FieldsComeInTheOrderOfTheFirst) {
  const std::array<CatalogueRef, 2> parts{
      labelled({"ant", "bee"}), labelled({"bee"}, /*has_label_first=*/true)};

  const CatalogueRef joined = of(join_catalogues(parts));

  EXPECT_EQ(joined->fields()[0].name, "data");
  EXPECT_EQ(joined->int64(1, {2}), 1);
  EXPECT_EQ(joined->object(joined->range(0, {2}).object).key, "1/object0");
}

TEST(DeriveTest, LabelsThatNobodyCanNameAreRefused) {
  const std::array<CatalogueRef, 2> bare{labelled({"ant"}), labelled({})};
  const std::array<CatalogueRef, 2> outside{labelled({"ant"}),
                                            labelled({"bee"}, false, 1)};

  EXPECT_THAT(join_catalogues(bare).error().message(),
              HasSubstr("part 1: its labels are bare numbers"));
  EXPECT_THAT(join_catalogues(outside).error().message(),
              HasSubstr("'object0' has the label 1"));
}

TEST(DeriveTest, JoinedPartsAreCountedOn) {
  const CatalogueRef two =
      of(join_catalogues(std::array{pictures(1), pictures(2)}));
  const std::array<CatalogueRef, 3> parts{pictures(1), two, pictures(1)};
  const std::array<std::size_t, 3> places{0, 2, 0};

  const CatalogueRef joined = of(join_catalogues(parts, places));

  const auto key = [&](std::uint64_t sample) {
    return joined->object(joined->range(0, {sample}).object).key;
  };
  ASSERT_EQ(joined->samples(), 5u);
  EXPECT_EQ(key(0), "0/image0");
  EXPECT_EQ(key(1), "1/image0");
  EXPECT_EQ(key(2), "2/image0");
  EXPECT_EQ(key(4), "3/image0");
}

TEST(DeriveTest, PartsWithOtherFieldsAreRefused) {
  CatalogueWriter writer(Layout::kObjects, EtagKind::kNone);
  writer.add_field({"audio", FieldKind::kBytes});
  const std::array<CatalogueRef, 2> parts{
      pictures(1), open_ref(*std::move(writer).finish())};

  const Result<Catalogue> joined = join_catalogues(parts);

  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(joined.error().message(), HasSubstr("(audio: bytes)"));
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
  // Part of the format of a split: its results must never change.
  EXPECT_EQ(share_of("cat/1.jpg", 0, ends), 0u);
  EXPECT_EQ(share_of("cat/2.jpg", 0, ends), 0u);
}

}  // namespace
}  // namespace leat
