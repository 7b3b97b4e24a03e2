// Tests for every store: reads of ranges and whole objects.
#include <gmock/gmock.h>

#include "leat/store/testing/conformance_themes.h"

namespace leat::testing {

using ::testing::HasSubstr;

void join_reads() {}

TEST_P(StoreConformanceTest, ReadsAnyRange) {
  const std::string bytes = patterned(300'000);
  open({{"folder/object", bytes}, {"one", "x"}});

  const std::vector<std::pair<std::uint64_t, std::size_t>> ranges = {
      {0, 300'000}, {0, 1}, {1, 1}, {299'999, 1}, {65'535, 131'074}};
  for (const auto& [offset, size] : ranges) {
    const auto got = read({.key = "folder/object"}, offset, size);
    ASSERT_OK(got);
    EXPECT_TRUE(*got == bytes.substr(offset, size)) << offset << ' ' << size;
  }
  const auto one = read({.key = "one"}, 0, 1);
  ASSERT_OK(one);
  EXPECT_EQ(*one, "x");
}

TEST_P(StoreConformanceTest, WritesNothingOutsideTheRange) {
  open({{"object", patterned(1000)}});
  std::string bytes(300, '#');

  const auto result = read_range(
      store(),
      {.object = {.key = "object"},
       .offset = 500,
       .into = std::as_writable_bytes(std::span(bytes.data() + 100, 100))},
      {});

  ASSERT_OK(result);
  EXPECT_EQ(bytes.substr(0, 100), std::string(100, '#'));
  EXPECT_EQ(bytes.substr(100, 100), patterned(1000).substr(500, 100));
  EXPECT_EQ(bytes.substr(200), std::string(100, '#'));
}

TEST_P(StoreConformanceTest, RefusesARangePastTheEnd) {
  open({{"object", patterned(100)}, {"empty", ""}});

  EXPECT_ERROR(read({.key = "object"}, 0, 101), ErrorCode::kInvalidArgument);
  EXPECT_ERROR(read({.key = "object"}, 99, 2), ErrorCode::kInvalidArgument);
  EXPECT_ERROR(read({.key = "object"}, 100, 1), ErrorCode::kInvalidArgument);
  EXPECT_ERROR(read({.key = "object"}, std::uint64_t{1} << 40, 8),
               ErrorCode::kInvalidArgument);
  EXPECT_ERROR(read({.key = "empty"}, 0, 1), ErrorCode::kInvalidArgument);
}

TEST_P(StoreConformanceTest, RefusesAnOffsetThatWouldWrapAround) {
  open({{"object", patterned(100)}});

  EXPECT_ERROR(read({.key = "object"}, UINT64_MAX - 3, 8),
               ErrorCode::kInvalidArgument);
  EXPECT_ERROR(read({.key = "object"}, UINT64_MAX, 1),
               ErrorCode::kInvalidArgument);
}

TEST_P(StoreConformanceTest, RefusesAnEmptyRange) {
  open({{"object", patterned(100)}});

  EXPECT_ERROR(read({.key = "object"}, 0, 0), ErrorCode::kInvalidArgument);
}

TEST_P(StoreConformanceTest, NamesTheObjectThatIsMissing) {
  open({{"there", "x"}});

  const auto missing = read({.key = "folder/not-there"}, 0, 1);

  EXPECT_ERROR(missing, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("folder/not-there"));
  EXPECT_ERROR(store().stat("folder/not-there", {}), ErrorCode::kNotFound);
  EXPECT_ERROR(store().stat("ther", {}), ErrorCode::kNotFound);
}

TEST_P(StoreConformanceTest, TellsSizeAndVersion) {
  open({{"a", patterned(1234)}, {"empty", ""}});

  const auto info = store().stat("a", {});
  const auto empty = store().stat("empty", {});

  ASSERT_OK(info);
  EXPECT_EQ(info->key, "a");
  EXPECT_EQ(info->size_bytes, 1234u);
  EXPECT_EQ(info->etag.empty(), !store().traits().has_etags);
  ASSERT_OK(empty);
  EXPECT_EQ(empty->size_bytes, 0u);
}

TEST_P(StoreConformanceTest, ReadsTheVersionAskedForAndNoOther) {
  open({{"a", patterned(100)}});
  if (!store().traits().has_etags) GTEST_SKIP() << "has no ETags";
  const auto info = store().stat("a", {});
  ASSERT_OK(info);

  const auto same = read({.key = "a", .etag = info->etag}, 10, 10);
  const auto other = read({.key = "a", .etag = "\"another-version\""}, 10, 10);

  ASSERT_OK(same);
  EXPECT_EQ(*same, patterned(100).substr(10, 10));
  EXPECT_ERROR(other, ErrorCode::kCorrupt);
  EXPECT_THAT(other.error().message(), HasSubstr("changed"));
}

TEST_P(StoreConformanceTest, ReadsAnObjectOfTheSizeAskedForAndNoOther) {
  open({{"a", patterned(100)}});

  const auto same = read({.key = "a", .size_bytes = 100}, 10, 10);
  const auto shorter = read({.key = "a", .size_bytes = 90}, 0, 90);

  ASSERT_OK(same);
  EXPECT_EQ(*same, patterned(100).substr(10, 10));
  EXPECT_ERROR(shorter, ErrorCode::kCorrupt);
  EXPECT_THAT(shorter.error().message(), HasSubstr("changed"));
}

TEST_P(StoreConformanceTest, ReadsOddKeys) {
  if (!GetParam().takes_odd_keys) GTEST_SKIP() << "takes no odd keys";
  Objects objects;
  for (const std::string& key : odd_keys()) objects[key] = "bytes of " + key;
  open(objects);

  for (const std::string& key : odd_keys()) {
    const std::string& bytes = objects[key];
    const auto got = read({.key = key}, 0, bytes.size());
    ASSERT_TRUE(got) << key << ": " << got.error().message();
    EXPECT_EQ(*got, bytes);
    const auto info = store().stat(key, {});
    ASSERT_TRUE(info) << key << ": " << info.error().message();
    EXPECT_EQ(info->key, key);
    EXPECT_EQ(info->size_bytes, bytes.size());
  }
}

TEST_P(StoreConformanceTest, ReadsWholeSmallObjects) {
  open({{"small", patterned(77)}, {"empty", ""}});

  const auto small = read_object(store(), "small", 100, {});
  const auto empty = read_object(store(), "empty", 100, {});
  const auto large = read_object(store(), "small", 76, {});

  ASSERT_OK(small);
  EXPECT_EQ(as_text(small->span()), patterned(77));
  ASSERT_OK(empty);
  EXPECT_EQ(empty->size(), 0u);
  EXPECT_ERROR(large, ErrorCode::kResourceExhausted);
}

TEST_P(StoreConformanceTest, ShowsTheUrlOfAnObject) {
  open({{"a/b", "x"}});

  EXPECT_THAT(store().url_of("a/b"), HasSubstr("a/b"));
}

}  // namespace leat::testing
