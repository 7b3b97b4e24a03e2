#include "leat/store/list_all.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "leat/store/page_builder.h"
#include "leat/store/split_keys.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Keys that list as S3 does, a few a page, and a count of the requests.
class ListedStore final : public Store {
 public:
  ListedStore(std::set<std::string> keys, std::size_t page_size)
      : keys_(std::move(keys)), page_size_(page_size) {}

  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override {
    const std::uint64_t nth = lists_.fetch_add(1);
    const std::size_t open = open_.fetch_add(1) + 1;
    std::size_t most = most_open_.load();
    while (most < open && !most_open_.compare_exchange_weak(most, open)) {
    }
    Result<ListPage> page = answer(request, nth, stop);
    open_.fetch_sub(1);
    return page;
  }

  void read(ReadRequest, std::stop_token, ReadDone done) override {
    done(Error(ErrorCode::kInvalidArgument, "it only lists"));
  }
  Result<ObjectInfo> write(std::string_view, std::span<const std::byte>,
                           std::stop_token) override {
    return Error(ErrorCode::kInvalidArgument, "it only lists");
  }
  Result<ObjectInfo> stat(std::string_view, std::stop_token) override {
    return Error(ErrorCode::kInvalidArgument, "it only lists");
  }
  StoreTraits traits() const override {
    return {.lists_in_order = !has_own_order};
  }
  std::string url_of(std::string_view key) const override {
    return "test://" + std::string(key);
  }

  std::uint64_t lists() const { return lists_; }
  std::size_t most_open() const { return most_open_; }

  std::function<std::optional<Error>(std::uint64_t nth, std::stop_token)> fault;
  bool lists_backwards = false;
  bool has_own_order = false;
  bool lists_in_no_order = false;
  bool repeats_itself = false;

 private:
  Result<ListPage> answer(const ListRequest& request, std::uint64_t nth,
                          const std::stop_token& stop) {
    if (fault) {
      if (auto error = fault(nth, stop)) return *std::move(error);
    }
    PageBuilder page(request, page_size_);
    for (auto it = keys_.lower_bound(page.from()); it != keys_.end(); ++it) {
      const auto verdict = page.offer(*it);
      if (verdict == PageBuilder::Verdict::kFull) break;
      if (verdict == PageBuilder::Verdict::kTake) {
        page.add({.key = *it,
                  .size_bytes = it->ends_with('/') ? 0u : 1u,
                  .etag = ""});
      }
    }
    ListPage made = std::move(page).finish();
    if (lists_backwards) std::reverse(made.objects.begin(), made.objects.end());
    if (lists_in_no_order) deal(request, made);
    return made;
  }

  /// Makes `made` the page of an order that has nothing to do with the keys:
  /// its token is a number of keys. Like S3 Express, it knows no `start_after`.
  void deal(const ListRequest& request, ListPage& made) const {
    std::vector<std::string> all(keys_.begin(), keys_.end());
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    made = ListPage{.is_sorted = false};
    const std::size_t from =
        request.resume.empty() ? 0 : std::stoul(request.resume);
    const std::size_t upto = std::min(from + page_size_, all.size());
    for (std::size_t i = from; i < upto; ++i) {
      if (!all[i].starts_with(request.prefix)) continue;
      made.objects.push_back({.key = all[i],
                              .size_bytes = all[i].ends_with('/') ? 0u : 1u,
                              .etag = ""});
    }
    if (upto < all.size()) made.resume = std::to_string(upto);
    if (repeats_itself) made.resume = "0";
    std::ranges::sort(made.objects, {}, &ObjectInfo::key);
  }

  const std::set<std::string> keys_;
  const std::size_t page_size_;
  std::atomic<std::uint64_t> lists_ = 0;
  std::atomic<std::size_t> open_ = 0;
  std::atomic<std::size_t> most_open_ = 0;
};

std::vector<std::string> keys_of(const std::vector<ObjectInfo>& objects) {
  std::vector<std::string> keys;
  keys.reserve(objects.size());
  for (const ObjectInfo& object : objects) keys.push_back(object.key);
  return keys;
}

/// A plain model of what list_all() must find.
std::vector<std::string> expected(const std::set<std::string>& keys,
                                  const std::string& prefix) {
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    if (!key.starts_with(prefix) || key.ends_with('/')) continue;
    const std::string rest = "/" + key.substr(prefix.size());
    if (rest.find("/.leat/") == std::string::npos) found.push_back(key);
  }
  return found;
}

void check(const std::set<std::string>& keys, const std::string& prefix,
           std::size_t page_size, std::size_t threads) {
  ListedStore store(keys, page_size);

  const auto found =
      list_all(store, prefix, {.threads = threads, .progress = {}}, {});

  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(keys_of(*found), expected(keys, prefix));
  ASSERT_LE(store.most_open(), threads);
}

TEST(ListAllTest, SortsWhatAStoreListsInAnOrderOfItsOwn) {
  std::set<std::string> keys = {"p/.leat/x", "p/folder/", "q"};
  for (int i = 0; i < 50; ++i) keys.insert("p/" + std::to_string(i));
  ListedStore store(keys, 7);
  store.lists_backwards = true;
  store.has_own_order = true;

  const auto found = list_all(store, "p/", {.threads = 4, .progress = {}}, {});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(keys_of(*found), expected(keys, "p/"));
  EXPECT_EQ(store.most_open(), 1u);
  EXPECT_EQ(store.lists(), 8u) << "each page once";
}

rc::Gen<std::string> key_of(std::string_view alphabet) {
  return rc::gen::suchThat(rc::gen::container<std::string>(
                               rc::gen::elementOf(std::string(alphabet))),
                           [](const std::string& key) { return !key.empty(); });
}

void check_any(std::string_view alphabet) {
  const auto keys =
      *rc::gen::container<std::set<std::string>>(key_of(alphabet));
  const auto prefix = *rc::gen::element<std::string>("", "a", "a/", "0", "b/1");
  const auto page_size = *rc::gen::inRange<std::size_t>(1, 8);
  const auto threads = *rc::gen::inRange<std::size_t>(1, 6);
  ListedStore store(keys, page_size);

  const auto found =
      list_all(store, prefix, {.threads = threads, .progress = {}}, {});

  RC_ASSERT(found.has_value());
  RC_ASSERT(keys_of(*found) == expected(keys, prefix));
}

RC_GTEST_PROP(ListAllTest, FindsEachKeyOnceInOrderFlat, ()) {
  check_any("0123456789ab");
}
RC_GTEST_PROP(ListAllTest, FindsEachKeyOnceInOrderNested, ()) {
  check_any("a/b1.");
}
RC_GTEST_PROP(ListAllTest, FindsEachKeyOnceInOrderOfOddBytes, ()) {
  check_any("a\x01/ ~\x7f\x80\xff\xc3\xa9%+");
}

std::set<std::string> numbered(std::string_view before, int count, int digits) {
  std::set<std::string> keys;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, static_cast<std::size_t>(digits) - number.size(), '0');
    keys.insert(std::string(before) + number + ".jpg");
  }
  return keys;
}

std::set<std::string> hashed(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::set<std::string> keys;
  constexpr std::string_view kHex = "0123456789abcdef";
  while (keys.size() < static_cast<std::size_t>(count)) {
    std::string key = "train/";
    for (int i = 0; i < 16; ++i) key += kHex[random() % 16];
    keys.insert(key + ".bin");
  }
  return keys;
}

std::set<std::string> nested(int folders, int each) {
  std::set<std::string> keys;
  for (int f = 0; f < folders; ++f) {
    const std::string folder = "train/n" + std::to_string(1000000 + f * 7919);
    keys.merge(numbered(folder + "/img_", each, 5));
    keys.insert(folder + "/");
  }
  return keys;
}

TEST(ListAllTest, FindsWhatDataSetsLookLike) {
  std::set<std::string> mixed = numbered("a/", 300, 4);
  mixed.merge(numbered("", 200, 3));
  mixed.merge(hashed(200, 5));
  mixed.insert({"a/.leat/x", ".leat/catalogue", "b/", "a.leat/y", "z.leat"});
  for (const std::size_t threads : {1u, 2u, 16u}) {
    check(numbered("img_", 5000, 8), "img_", 50, threads);
    check(hashed(3000, 1), "train/", 40, threads);
    check(nested(40, 60), "train/", 25, threads);
    check(mixed, "", 10, threads);
    check({}, "", 10, threads);
  }
}

TEST(ListAllTest, APageTakesOneRequest) {
  ListedStore store(numbered("a/", 100, 3), 1000);

  ASSERT_EQ(list_all(store, "a/", {}, {})->size(), 100u);

  EXPECT_EQ(store.lists(), 1u);
}

TEST(ListAllTest, AsksAtMostTwiceAsOftenAsOneAfterAnother) {
  struct Row {
    const char* name;
    std::set<std::string> keys;
  };
  for (const Row& row :
       {Row{"numbered", numbered("img_", 20000, 8)},
        Row{"hashed", hashed(20000, 2)}, Row{"nested", nested(50, 400)},
        Row{"many folders", nested(5000, 3)}}) {
    const std::uint64_t pages = row.keys.size() / 100 + 1;
    ListedStore store(row.keys, 100);

    ASSERT_TRUE(list_all(store, "", {.threads = 16, .progress = {}}, {}));

    EXPECT_LE(store.lists(), 2 * pages + 20) << row.name;
  }
}

TEST(ListAllTest, AsksForFewPagesMoreThanManyKeysTake) {
  for (const auto& keys : {numbered("img_", 40000, 8), hashed(40000, 2)}) {
    ListedStore store(keys, 10);

    ASSERT_TRUE(list_all(store, "", {.threads = 16, .progress = {}}, {}));

    EXPECT_LE(store.lists(), 4000 + 48 + 16 + 20);
  }
}

TEST(ListAllTest, TellsOfProgressOnTheCallersThread) {
  ListedStore store(nested(10, 50), 20);
  const auto caller = std::this_thread::get_id();
  ListProgress last;
  bool is_elsewhere = false;

  ASSERT_TRUE(list_all(store, "",
                       {.threads = 4,
                        .progress =
                            [&](const ListProgress& progress) {
                              is_elsewhere |=
                                  std::this_thread::get_id() != caller;
                              EXPECT_GE(progress.objects, last.objects);
                              last = progress;
                            }},
                       {}));

  EXPECT_FALSE(is_elsewhere);
  EXPECT_EQ(last.objects, 500u);
  EXPECT_EQ(last.lists, store.lists());
}

TEST(ListAllTest, TheFirstErrorEndsIt) {
  for (const std::uint64_t failing : {0u, 1u, 2u, 7u}) {
    ListedStore store(nested(20, 50), 20);
    store.fault = [&](std::uint64_t nth,
                      const std::stop_token&) -> std::optional<Error> {
      if (nth < failing) return std::nullopt;
      return Error(ErrorCode::kPermissionDenied, "no");
    };

    const auto found = list_all(store, "", {.threads = 4, .progress = {}}, {});

    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), ErrorCode::kPermissionDenied);
    EXPECT_LE(store.lists(), failing + 4);
  }
}

TEST(ListAllTest, StopsWhenTold) {
  for (const std::uint64_t when : {0u, 1u, 5u}) {
    ListedStore store(nested(20, 50), 20);
    std::stop_source source;
    store.fault = [&](std::uint64_t nth,
                      const std::stop_token& stop) -> std::optional<Error> {
      if (nth == when) source.request_stop();
      if (!stop.stop_requested()) return std::nullopt;
      return Error(ErrorCode::kCancelled, "cancelled");
    };

    const auto found =
        list_all(store, "", {.threads = 4, .progress = {}}, source.get_token());

    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), ErrorCode::kCancelled);
  }
}

TEST(ListAllTest, FindsAllInAStoreThatListsInNoOrder) {
  const std::set<std::string> keys = nested(20, 50);
  ListedStore store(keys, 20);
  store.lists_in_no_order = true;
  std::uint64_t told = 0;

  const auto found = list_all(
      store, "",
      {.threads = 4,
       .progress =
           [&](const ListProgress& progress) { told = progress.objects; }},
      {});

  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(keys_of(*found), expected(keys, ""));
  EXPECT_GE(told, found->size());
}

TEST(ListAllTest, EndsWhereAnUnorderedListRepeatsItself) {
  ListedStore store(numbered("", 100, 3), 10);
  store.lists_in_no_order = true;
  store.repeats_itself = true;

  const auto found = list_all(store, "", {}, {});

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().message(), HasSubstr("nothing new"));
}

TEST(ListAllTest, RefusesAStoreThatListsOutOfOrder) {
  ListedStore store(numbered("", 100, 3), 10);
  store.lists_backwards = true;

  const auto found = list_all(store, "", {}, {});

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(found.error().message(), HasSubstr("byte order"));
}

TEST(SplitKeysTest, CountsDigitsThroughAndKeepsWords) {
  const std::vector<std::string_view> seen = {"img_0000.jpg", "img_0049.jpg"};

  EXPECT_THAT(
      guess_split_keys("", {.after = "img_0049.jpg", .upto = {}}, seen, 4),
      ElementsAre("img_20", "img_40", "img_60", "img_80"));
  EXPECT_THAT(guess_split_keys("", {.after = "img_0049.jpg", .upto = "img_20"},
                               seen, 1),
              ElementsAre("img_10"));
}

TEST(SplitKeysTest, LooksElsewhereOnceTheLikelyIsUsedUp) {
  const std::vector<std::string_view> seen = {"a/x98", "a/x99"};

  const auto keys =
      guess_split_keys("a/", {.after = "a/x99", .upto = {}}, seen, 2);

  ASSERT_FALSE(keys.empty());
  EXPECT_GT(keys.front(), "a/x99");
  EXPECT_TRUE(keys.back().starts_with("a/"));
}

TEST(SplitKeysTest, PicksFoldersEvenly) {
  const std::vector<std::string> folders = {"a/", "b/", "c/", "d/", "e/", "f/"};
  const KeyRange range{.after = "a/z", .upto = "f/"};

  EXPECT_THAT(pick_split_keys(range, folders, 2), ElementsAre("c/", "e/"));
  EXPECT_THAT(pick_split_keys(range, folders, 9),
              ElementsAre("b/", "c/", "d/", "e/"));
  EXPECT_TRUE(pick_split_keys({.after = "f/", .upto = {}}, folders, 2).empty());
}

RC_GTEST_PROP(SplitKeysTest, GuessesAreWithinSortedAndSendable, ()) {
  const std::string alphabet("0a/ ~\x01\x7f\x80\xff\xc3\xa9\xe5\x9b\xbe", 14);
  auto after = *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
  auto upto = *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
  if (upto < after) std::swap(after, upto);
  KeyRange range{.after = after, .upto = std::nullopt};
  if (*rc::gen::arbitrary<bool>() && after < upto) range.upto = upto;
  const std::vector<std::string_view> seen = {after, upto};
  const auto count = *rc::gen::inRange<std::size_t>(0, 20);

  const auto keys = guess_split_keys("", range, seen, count);

  RC_ASSERT(keys.size() <= count);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    RC_ASSERT(keys[i] > (i == 0 ? range.after : keys[i - 1]));
    if (range.upto) RC_ASSERT(keys[i] < *range.upto);
    for (const char c : keys[i]) {
      RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f');
    }
  }
}

}  // namespace
}  // namespace leat
