#include "leat/index/companions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ObjectInfo> listing(std::vector<std::string> keys) {
  std::ranges::sort(keys);
  std::vector<ObjectInfo> objects;
  objects.reserve(keys.size());
  for (const std::string& key : keys) {
    objects.push_back({.key = key, .size_bytes = 1});
  }
  return objects;
}

std::vector<std::string> keys_of(const std::vector<ObjectInfo>& objects) {
  std::vector<std::string> keys;
  keys.reserve(objects.size());
  for (const ObjectInfo& object : objects) keys.push_back(object.key);
  return keys;
}

std::string index_of(const std::string& shard,
                     const std::vector<std::string>& companions) {
  const std::vector<ObjectInfo> listed = listing(companions);
  const auto* index = member_index_of({.key = shard, .size_bytes = 1}, listed);
  return index == nullptr ? "none" : index->key;
}

TEST(SortObjectsTest, TellsShardsFromWhatLiesBesideThem) {
  const auto sorted = sort_objects(
      listing({"0.tar", "0.idx", "0_stats.json", "0.parquet", "a/1.tar",
               "a/1.tar.idx", "a/1-x.json", "shardindex.json"}));

  ASSERT_TRUE(sorted) << sorted.error().message();
  EXPECT_EQ(sorted->layout, Layout::kShards);
  EXPECT_THAT(keys_of(sorted->data), ElementsAre("0.tar", "a/1.tar"));
  EXPECT_EQ(sorted->companions.size(), 6u);
  EXPECT_THAT(keys_of(loose_jsons(*sorted)), ElementsAre("shardindex.json"));
}

TEST(SortObjectsTest, WithoutShardsAllIsData) {
  const auto sorted = sort_objects(listing({"a/0.idx", "a/0.json"}));

  ASSERT_TRUE(sorted) << sorted.error().message();
  EXPECT_EQ(sorted->layout, Layout::kObjects);
  EXPECT_EQ(sorted->data.size(), 2u);
  EXPECT_THAT(sorted->companions, IsEmpty());
}

TEST(SortObjectsTest, OtherThingsBesideShardsAreStillMixed) {
  EXPECT_FALSE(sort_objects(listing({"0.tar", "0.jpg"})));
  EXPECT_FALSE(sort_objects(listing({"0.tar", "labels.csv"})));
}

TEST(SortObjectsTest, ATarAmongManyJsonsIsNoDatasetOfShards) {
  std::vector<std::string> keys = {"stray.tar"};
  keys.reserve(kMostLooseCompanions + 2);
  for (std::size_t i = 0; i < kMostLooseCompanions; ++i) {
    keys.push_back(fmt::format("{:03}.json", i));
  }
  EXPECT_TRUE(sort_objects(listing(keys)));

  keys.push_back("one more.json");

  EXPECT_FALSE(sort_objects(listing(keys)));
}

TEST(MemberIndexOfTest, TriesTheNamesThatToolsGive) {
  EXPECT_EQ(index_of("a/b.c.tar", {"a/b.c.idx", "a/b.idx"}), "a/b.c.idx");
  EXPECT_EQ(index_of("a/b.c.tar", {"a/b.c.tar.idx", "a/b.idx"}),
            "a/b.c.tar.idx");
  EXPECT_EQ(index_of("a/b.c.tar", {"a/b.idx"}), "a/b.idx");
  EXPECT_EQ(index_of("a.b/c.tar", {"a.idx", "a.b/d.idx"}), "none");
  // Its container uses none.
  EXPECT_EQ(index_of("a/b.tfrecord", {"a/b.idx"}), "none");
}

}  // namespace
}  // namespace leat
