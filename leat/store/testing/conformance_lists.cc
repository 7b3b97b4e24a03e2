// Tests for every store that lists.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "leat/store/testing/conformance_themes.h"

namespace leat::testing {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void join_lists() {}

TEST_P(StoreConformanceTest, ListsOddKeysInByteOrder) {
  if (!GetParam().takes_odd_keys) GTEST_SKIP() << "takes no odd keys";
  Objects objects;
  for (const std::string& key : odd_keys()) objects[key] = key;
  open(objects);
  if (!store().traits().can_list) GTEST_SKIP() << "cannot list";

  const auto all = list_all({});

  ASSERT_OK(all);
  std::vector<std::string> sorted = odd_keys();
  std::ranges::sort(sorted);
  EXPECT_EQ(keys_of(*all), sorted);
}

TEST_P(StoreConformanceTest, ListsWhatItHoldsInByteOrder) {
  // '-' < '.' < '/' < '0': a folder sorts by its slash.
  const Objects objects = {{"a-b", "1"},  {"a.txt", "22"}, {"a/x", "333"},
                           {"a/y/z", ""}, {"a0", "4444"},  {"B", "5"},
                           {"b", "6"}};
  open(objects);
  if (!store().traits().can_list) GTEST_SKIP() << "cannot list";

  const auto all = list_all({});

  ASSERT_OK(all);
  EXPECT_THAT(keys_of(*all),
              ElementsAre("B", "a-b", "a.txt", "a/x", "a/y/z", "a0", "b"));
  EXPECT_THAT(all->common_prefixes, IsEmpty());
  for (const ObjectInfo& object : all->objects) {
    EXPECT_EQ(object.size_bytes, objects.at(object.key).size());
    const auto info = store().stat(object.key, {});
    ASSERT_OK(info);
    EXPECT_EQ(object.etag, info->etag);
  }
}

TEST_P(StoreConformanceTest, ListsUnderAPrefixThatNeedNotBeAFolder) {
  open({{"ab.x", "1"}, {"ab/c", "2"}, {"abc/d", "3"}, {"b/ab", "4"}});
  if (!store().traits().can_list) GTEST_SKIP() << "cannot list";

  const auto half = list_all({.prefix = "ab"});
  const auto folder = list_all({.prefix = "abc/"});
  const auto none = list_all({.prefix = "zz/none"});

  ASSERT_OK(half);
  ASSERT_OK(folder);
  ASSERT_OK(none);
  EXPECT_THAT(keys_of(*half), ElementsAre("ab.x", "ab/c", "abc/d"));
  EXPECT_THAT(keys_of(*folder), ElementsAre("abc/d"));
  EXPECT_THAT(none->objects, IsEmpty());
}

TEST_P(StoreConformanceTest, FoldsKeysAtTheDelimiter) {
  open({{"cat/1", ""},
        {"cat/2", ""},
        {"dog/1", ""},
        {"dog/x/2", ""},
        {"readme", ""},
        {"zebra/1", ""}});
  if (!store().traits().can_list) GTEST_SKIP() << "cannot list";

  const auto top = list_all({.delimiter = "/"});
  const auto dog = list_all({.prefix = "dog/", .delimiter = "/"});

  ASSERT_OK(top);
  ASSERT_OK(dog);
  EXPECT_THAT(keys_of(*top), ElementsAre("readme"));
  EXPECT_THAT(top->common_prefixes, ElementsAre("cat/", "dog/", "zebra/"));
  EXPECT_THAT(keys_of(*dog), ElementsAre("dog/1"));
  EXPECT_THAT(dog->common_prefixes, ElementsAre("dog/x/"));
}

TEST_P(StoreConformanceTest, StartsAfterAKeyThatNeedNotExist) {
  open({{"a", ""}, {"b", ""}, {"c/1", ""}, {"c/2", ""}, {"d", ""}});
  if (!store().traits().can_list) GTEST_SKIP() << "cannot list";

  const auto after_b = list_all({.start_after = "b"});
  const auto after_c = list_all({.start_after = "c/11"});
  const auto within = list_all({.prefix = "c/", .start_after = "b"});
  const auto past = list_all({.start_after = "zzz"});

  ASSERT_OK(after_b);
  ASSERT_OK(after_c);
  ASSERT_OK(within);
  ASSERT_OK(past);
  EXPECT_THAT(keys_of(*after_b), ElementsAre("c/1", "c/2", "d"));
  EXPECT_THAT(keys_of(*after_c), ElementsAre("c/2", "d"));
  EXPECT_THAT(keys_of(*within), ElementsAre("c/1", "c/2"));
  EXPECT_THAT(past->objects, IsEmpty());
}

TEST_P(StoreConformanceTest, ListsEachKeyOnceOverManyPages) {
  Objects objects;
  std::vector<std::string> keys;
  std::vector<std::string> folders;
  for (int folder = 0; folder < 12; ++folder) {
    folders.push_back(fmt::format("f{:02}/", folder));
    for (int i = 0; i < 9; ++i) {
      keys.push_back(fmt::format("{}{:03}", folders.back(), i));
      objects[keys.back()] = "x";
    }
  }
  open(objects);
  if (!store().traits().can_list) GTEST_SKIP() << "cannot list";

  const auto all = list_all({});
  const auto folded = list_all({.delimiter = "/"});

  ASSERT_OK(all);
  ASSERT_OK(folded);
  EXPECT_EQ(keys_of(*all), keys);
  EXPECT_EQ(folded->common_prefixes, folders);
  EXPECT_THAT(folded->objects, IsEmpty());
}

}  // namespace leat::testing
