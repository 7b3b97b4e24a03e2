#include "leat/index/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "leat/store/memory/memory_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<Catalogue> catalogue_of(Store& store, const Manifest& manifest,
                               std::stop_token stop = {}) {
  LEAT_TRY(BuiltCatalogue built,
           build_from_manifest(store, "set", manifest, {}, std::move(stop)));
  return Catalogue::open(std::move(built.bytes));
}

std::unique_ptr<Store> three_objects() {
  return open_memory_store({{"set/a.jpg", "12345"},
                            {"set/b.jpg", "123"},
                            {"set/b.png", "1"},
                            {"set/unnamed.jpg", "12"}});
}

ManifestColumn objects(std::string name, std::vector<std::string> keys) {
  ManifestColumn column{.field = {std::move(name), FieldKind::kBytes}};
  column.texts = std::move(keys);
  return column;
}

/// Rows of an image, a mask that not all have, and a label.
Manifest masks() {
  Manifest manifest{.rows = 3, .columns = {}, .classes = {"no", "yes"}};
  manifest.columns.push_back(objects("image", {"b.jpg", "a.jpg", "b.jpg"}));
  manifest.columns.push_back(objects("mask", {"b.png", "", ""}));
  manifest.columns.push_back({.field = {"label", FieldKind::kInt64}});
  manifest.columns.back().ints = {1, 0, 1};
  return manifest;
}

TEST(ManifestTest, RowsAreSamplesInTheirOrder) {
  const auto store = three_objects();

  const Result<Catalogue> catalogue = catalogue_of(*store, masks());

  ASSERT_TRUE(catalogue) << catalogue.error().message();
  ASSERT_EQ(catalogue->samples(), 3u);
  EXPECT_EQ(catalogue->objects(), 3u);
  EXPECT_EQ(catalogue->layout(), Layout::kObjects);
  EXPECT_EQ(catalogue->classes(), (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(catalogue->key({0}), "b.jpg");
  EXPECT_EQ(catalogue->key({2}), "b.jpg");
  EXPECT_EQ(catalogue->range(0, {1}).length_bytes, 5u);
  EXPECT_EQ(catalogue->range(0, {2}).length_bytes, 3u);
  EXPECT_EQ(catalogue->range(1, {0}).length_bytes, 1u);
  EXPECT_TRUE(catalogue->range(1, {1}).is_missing());
  EXPECT_EQ(catalogue->int64(2, {2}), 1);
}

TEST(ManifestTest, AsksForEachObjectOnceAndListsNothing) {
  std::atomic<int> stats = 0;
  testing::FaultyStore store(
      three_objects(),
      [&](const testing::FaultyCall& call) -> std::optional<Error> {
        if (call.kind != testing::FaultyCall::Kind::kStat) {
          return Error(ErrorCode::kInternal, "not asked for");
        }
        ++stats;
        return std::nullopt;
      });

  ASSERT_TRUE(catalogue_of(store, masks()));

  EXPECT_EQ(stats, 3);
}

TEST(ManifestTest, KnownSizesAreTaken) {
  const auto store = open_memory_store();
  Manifest manifest = masks();
  manifest.columns[0].sizes = {3, 5, 3};
  manifest.columns[1].sizes = {1, 0, 0};

  const Result<Catalogue> catalogue = catalogue_of(*store, manifest);

  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->range(0, {1}).length_bytes, 5u);
  EXPECT_EQ(catalogue->etag_kind(), EtagKind::kNone);
}

TEST(ManifestTest, ValuesMayBePartsOfObjects) {
  const auto store = three_objects();
  Manifest manifest = masks();
  manifest.columns[0].offsets = {0, 1, 2};
  manifest.columns[0].lengths = {1, 1, 0};
  manifest.names = {"x", "y", "z"};

  const Result<Catalogue> catalogue = catalogue_of(*store, manifest);

  ASSERT_TRUE(catalogue) << catalogue.error().message();
  EXPECT_EQ(catalogue->layout(), Layout::kShards);
  EXPECT_EQ(catalogue->range(0, {1}).offset, 1u);
  EXPECT_EQ(catalogue->range(0, {1}).length_bytes, 1u);
  EXPECT_EQ(catalogue->key({2}), "z");
  manifest.columns[0].lengths = {1, 1000, 0};
  EXPECT_EQ(catalogue_of(*store, manifest).error().code(),
            ErrorCode::kInvalidArgument);
  manifest.columns[0].lengths.pop_back();
  EXPECT_FALSE(catalogue_of(*store, manifest));
}

TEST(ManifestTest, NamesTheRowOfAnObjectThatIsNotThere) {
  const auto store = three_objects();
  Manifest manifest = masks();
  manifest.columns[1].texts[2] = "gone.png";

  const Result<Catalogue> catalogue = catalogue_of(*store, manifest);

  ASSERT_FALSE(catalogue);
  EXPECT_EQ(catalogue.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(catalogue.error().message(),
              AllOf(HasSubstr("row 3, field mask"), HasSubstr("set/gone.png")));
}

TEST(ManifestTest, ColumnsMustBeAsLongAsTheManifest) {
  const auto store = three_objects();
  Manifest manifest = masks();
  manifest.columns[2].ints.pop_back();

  const Result<Catalogue> catalogue = catalogue_of(*store, manifest);

  ASSERT_FALSE(catalogue);
  EXPECT_THAT(catalogue.error().message(),
              HasSubstr("'label' has 2 values and the manifest 3 rows"));
}

TEST(ManifestTest, SomeColumnMustNameObjects) {
  const auto store = three_objects();
  Manifest manifest = masks();
  manifest.columns.erase(manifest.columns.begin(),
                         manifest.columns.begin() + 2);

  EXPECT_EQ(catalogue_of(*store, manifest).error().code(),
            ErrorCode::kInvalidArgument);
}

TEST(ManifestTest, CanBeStopped) {
  const auto store = three_objects();
  std::stop_source stop;
  stop.request_stop();

  EXPECT_EQ(catalogue_of(*store, masks(), stop.get_token()).error().code(),
            ErrorCode::kCancelled);
}

}  // namespace
}  // namespace leat
