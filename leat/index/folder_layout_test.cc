#include "leat/index/folder_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;

std::vector<ObjectInfo> listing(const std::vector<std::string>& keys) {
  std::vector<ObjectInfo> objects;
  objects.reserve(keys.size());
  for (const std::string& key : keys) {
    objects.push_back({.key = key, .size_bytes = 1, .etag = ""});
  }
  return objects;
}

Error error_of(const std::vector<std::string>& keys) {
  Result<Layout> layout = layout_of(listing(keys));
  EXPECT_FALSE(layout);
  return layout ? Error(ErrorCode::kInternal, "no error")
                : std::move(layout).error();
}

TEST(IsHiddenTest, HidesDotsMarkersAndSparksSuccess) {
  for (const char* key : {".leat/catalogue", ".x", "a/.b", "a/.b/c", "a/",
                          "_SUCCESS", "a/_SUCCESS", ""}) {
    EXPECT_TRUE(is_hidden(key)) << key;
  }
}

TEST(IsHiddenTest, ShowsWhatCamerasAndPeopleName) {
  for (const char* key : {"a/_DSC0001.jpg", "a.b/c.d", "a../b", "__x__"}) {
    EXPECT_FALSE(is_hidden(key)) << key;
  }
}

TEST(LayoutOfTest, ShardsIfAllAreTar) {
  EXPECT_EQ(*layout_of(listing({"0.tar", "a/1.tar"})), Layout::kShards);
  EXPECT_EQ(*layout_of(listing({"a/0.jpg", "a/tar"})), Layout::kObjects);
}

TEST(LayoutOfTest, NamesWhatIsMixed) {
  const Error error = error_of({"0.tar", "labels.csv"});

  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("'0.tar'"));
  EXPECT_THAT(error.message(), HasSubstr("'labels.csv'"));
}

TEST(LayoutOfTest, RefusesNothingButCompressedArchives) {
  EXPECT_THAT(error_of({"0.tar.gz", "1.tgz"}).message(),
              HasSubstr("uncompressed"));
}

TEST(LabelsTest, CountsThroughSortedFolders) {
  // In byte order of keys "a-b/" comes before "a/"; of names, after.
  const auto labels = Labels::make(listing({"a-b/1", "a/1", "b/x/2"}), {});

  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_EQ(labels->classes(), (std::vector<std::string>{"a", "a-b", "b"}));
  EXPECT_EQ(labels->label_of("a-b/1"), 1);
  EXPECT_EQ(labels->label_of("a/1"), 0);
  EXPECT_EQ(labels->label_of("b/x/2"), 2);
}

TEST(LabelsTest, FollowsTheClassesGiven) {
  const auto labels =
      Labels::make(listing({"cat/1", "dog/1"}), {"dog", "fox", "cat"});

  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_EQ(labels->label_of("cat/1"), 2);
  EXPECT_EQ(labels->classes().size(), 3u);
}

TEST(LabelsTest, AreNoneWithoutFolders) {
  const auto labels = Labels::make(listing({"1.jpg", "2.jpg"}), {});

  ASSERT_TRUE(labels);
  EXPECT_TRUE(labels->classes().empty());
}

TEST(LabelsTest, RefusesObjectsBesideFolders) {
  const auto labels = Labels::make(listing({"README", "cat/1"}), {});

  ASSERT_FALSE(labels);
  EXPECT_EQ(labels.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(labels.error().message(), HasSubstr("'README'"));
}

TEST(LabelsTest, RefusesClassesThatDoNotFit) {
  EXPECT_FALSE(Labels::make(listing({"cat/1", "dog/1"}), {"cat"}));
  EXPECT_FALSE(Labels::make(listing({"cat/1"}), {"cat", "cat"}));
  EXPECT_FALSE(Labels::make(listing({"1.jpg"}), {"cat"}));
}

}  // namespace
}  // namespace leat
