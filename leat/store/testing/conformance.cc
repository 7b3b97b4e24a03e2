#include "leat/store/testing/conformance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <ostream>
#include <set>
#include <utility>

#include "leat/base/hash.h"

namespace leat::testing {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace {

constexpr std::size_t kMostPages = 1000;

/// Bytes that tell where they are from.
std::string patterned(std::size_t size, std::uint64_t seed = 1) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(mix64(seed * 1'000'003 + i));
  }
  return bytes;
}

std::vector<std::string> keys_of(const ListPage& page) {
  std::vector<std::string> keys;
  for (const ObjectInfo& object : page.objects) keys.push_back(object.key);
  return keys;
}

const std::vector<std::string>& odd_keys() {
  static const std::vector<std::string> keys = {
      "a b/c d.jpg",
      "plus+plus",
      "dt=2024-01-01/part=0",
      "time 12:30:00",
      "at@home, (1) [2]!",
      "100%",
      "%2F/escaped%20it",
      "\xc3\xbc/\xc3\xb1\xe4\xbd\xa0.bin",
      "q?x=1&y=2",
      "hash#1",
      "semi;colon",
      "quote'\"",
      "back\\slash",
      "tilde~_-.",
      "$dollar*star",
      "pipe|less<more>",
      "deep/er/and/deep/er",
  };
  return keys;
}

}  // namespace

void PrintTo(const StoreUnderTest& /*store*/, std::ostream* out) {
  *out << "the store under test";
}

decltype(::testing::ValuesIn(std::vector<StoreUnderTest>())) conforming(
    StoreUnderTest store) {
  return ::testing::ValuesIn(std::vector{std::move(store)});
}

Store& StoreConformanceTest::open(const Objects& objects) {
  store_ = GetParam().open(objects);
  return *store_;
}

Result<std::string> StoreConformanceTest::read(const ObjectId& object,
                                               std::uint64_t offset,
                                               std::size_t size,
                                               std::stop_token stop) {
  std::string bytes(size, '\0');
  LEAT_TRY_VOID(read_range(
      store(),
      {.object = object,
       .offset = offset,
       .into = std::as_writable_bytes(std::span(bytes.data(), size))},
      std::move(stop)));
  return bytes;
}

Result<ListPage> StoreConformanceTest::list_all(ListRequest request) {
  ListPage all;
  for (std::size_t pages = 0; pages < kMostPages; ++pages) {
    LEAT_TRY(ListPage page, store().list(request, {}));
    std::ranges::move(page.objects, std::back_inserter(all.objects));
    std::ranges::move(page.common_prefixes,
                      std::back_inserter(all.common_prefixes));
    if (page.resume.empty()) return all;
    request.resume = page.resume;
  }
  return Error(ErrorCode::kInternal, "the listing has no end");
}

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message()
#define EXPECT_ERROR(result, expected)                                    \
  do {                                                                    \
    const auto& leat_result = (result);                                   \
    ASSERT_FALSE(leat_result);                                            \
    EXPECT_EQ(to_string(leat_result.error().code()), to_string(expected)) \
        << leat_result.error().message();                                 \
  } while (false)

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

TEST_P(StoreConformanceTest, WritesWhatIsReadBack) {
  open({{"old", "before"}});
  if (!store().traits().can_write) GTEST_SKIP() << "cannot write";
  const std::string bytes = patterned(200'000, 2);

  const auto written = store().write("new/folder/object", as_bytes(bytes), {});
  const auto replaced = store().write("old", as_bytes("after!!"), {});
  const auto emptied = store().write("empty", {}, {});

  ASSERT_OK(written);
  EXPECT_EQ(written->key, "new/folder/object");
  EXPECT_EQ(written->size_bytes, bytes.size());
  const auto back = read({.key = "new/folder/object", .etag = written->etag}, 0,
                         bytes.size());
  ASSERT_OK(back);
  EXPECT_TRUE(*back == bytes);
  ASSERT_OK(replaced);
  const auto old = read({.key = "old", .etag = replaced->etag}, 0, 7);
  ASSERT_OK(old);
  EXPECT_EQ(*old, "after!!");
  ASSERT_OK(emptied);
  EXPECT_EQ(emptied->size_bytes, 0u);
}

TEST_P(StoreConformanceTest, TellsAReplacedObjectFromTheOldOne) {
  open({{"object", "before"}});
  if (!store().traits().can_write || !store().traits().has_etags) {
    GTEST_SKIP() << "cannot write, or has no ETags";
  }
  const auto before = store().stat("object", {});
  ASSERT_OK(before);

  const auto after = store().write("object", as_bytes("afters"), {});

  ASSERT_OK(after);
  EXPECT_NE(after->etag, before->etag);
  EXPECT_ERROR(read({.key = "object", .etag = before->etag}, 0, 6),
               ErrorCode::kCorrupt);
}

TEST_P(StoreConformanceTest, SaysWhatItCannotDo) {
  open({{"a", "x"}});

  if (!store().traits().can_list) {
    EXPECT_ERROR(store().list({}, {}), ErrorCode::kInvalidArgument);
  }
  if (!store().traits().can_write) {
    EXPECT_ERROR(store().write("b", as_bytes("x"), {}),
                 ErrorCode::kInvalidArgument);
  }
}

TEST_P(StoreConformanceTest, RefusesWhatIsAlreadyStopped) {
  open({{"object", patterned(1000)}});
  std::stop_source source;
  source.request_stop();

  EXPECT_ERROR(read({.key = "object"}, 0, 1000, source.get_token()),
               ErrorCode::kCancelled);
  EXPECT_ERROR(store().stat("object", source.get_token()),
               ErrorCode::kCancelled);
}

TEST_P(StoreConformanceTest, AnswersOnceHoweverItIsStopped) {
  open({{"object", patterned(1 << 20)}});
  constexpr std::size_t kReads = 32;
  std::vector<std::string> buffers(kReads, std::string(1 << 20, '\0'));
  std::vector<std::atomic<int>> answers(kReads);
  std::atomic<std::size_t> strange = 0;
  std::latch all_answered(kReads);
  std::stop_source source;

  for (std::size_t i = 0; i < kReads; ++i) {
    store().read(
        {.object = {.key = "object"},
         .into = std::as_writable_bytes(
             std::span(buffers[i].data(), buffers[i].size()))},
        source.get_token(), [&, i](Result<void> result) {
          if (!result && result.error().code() != ErrorCode::kCancelled) {
            ++strange;
          }
          ++answers[i];
          all_answered.count_down();
        });
    if (i == kReads / 2) source.request_stop();
  }
  all_answered.wait();
  close();

  EXPECT_EQ(strange, 0u);
  for (const auto& count : answers) EXPECT_EQ(count, 1);
}

TEST_P(StoreConformanceTest, ReadsManyAtOnceAndMayThenBeDestroyed) {
  Objects objects;
  for (int i = 0; i < 16; ++i) {
    objects[fmt::format("object-{:02}", i)] =
        patterned(10'000 + static_cast<std::size_t>(i),
                  static_cast<std::uint64_t>(i) + 7);
  }
  open(objects);
  const std::size_t reads = GetParam().most_reads;
  std::vector<std::string> buffers(reads);
  std::vector<std::string> keys(reads);
  std::atomic<std::size_t> failed = 0;
  std::latch all_answered(static_cast<std::ptrdiff_t>(reads));

  for (std::size_t i = 0; i < reads; ++i) {
    keys[i] = fmt::format("object-{:02}", i % 16);
    buffers[i].resize(objects[keys[i]].size() - i % 50);
    store().read({.object = {.key = keys[i]},
                  .offset = i % 50,
                  .into = std::as_writable_bytes(
                      std::span(buffers[i].data(), buffers[i].size()))},
                 {}, [&](const Result<void>& result) {
                   if (!result) ++failed;
                   all_answered.count_down();
                 });
  }
  all_answered.wait();
  close();

  EXPECT_EQ(failed, 0u);
  for (std::size_t i = 0; i < reads; ++i) {
    EXPECT_TRUE(buffers[i] == objects[keys[i]].substr(i % 50)) << i;
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
