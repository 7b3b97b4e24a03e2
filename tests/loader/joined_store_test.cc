#include "leat/store/layers/joined_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leat/store/memory/memory_store.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Store> two_stores() {
  std::vector<JoinedStore::Part> parts;
  parts.push_back(
      {open_memory_store({{"a/x", "first"}},
                         {.most_keys_per_page = 10, .url = "memory://one/"}),
       "a"});
  parts.push_back(
      {open_memory_store({{"x", "second"}, {"0/x", "deep"}},
                         {.most_keys_per_page = 10, .url = "memory://two/"}),
       ""});
  return std::make_unique<JoinedStore>(std::move(parts));
}

Result<std::string> whole(Store& store, const std::string& key) {
  LEAT_TRY(const Buffer bytes, read_object(store, key, 100, {}));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(JoinedStoreTest, EachKeyGoesToItsPart) {
  const auto store = two_stores();

  EXPECT_EQ(*whole(*store, "0/x"), "first");
  EXPECT_EQ(*whole(*store, "1/x"), "second");
  EXPECT_EQ(*whole(*store, "1/0/x"), "deep");
}

TEST(JoinedStoreTest, MessagesNameThePlaceInItsPart) {
  const auto store = two_stores();

  EXPECT_EQ(store->url_of("0/x"), "memory://one/a/x");
  EXPECT_EQ(store->url_of("1/x"), "memory://two/x");
  EXPECT_THAT(whole(*store, "0/gone").error().message(),
              HasSubstr("memory://one/a/gone"));
}

TEST(JoinedStoreTest, KeysOfNoPartAreNotThere) {
  const auto store = two_stores();

  for (const std::string key : {"", "x", "2/x", "1", "-1/x", "99999999999/x"}) {
    EXPECT_EQ(whole(*store, key).error().code(), ErrorCode::kNotFound) << key;
  }
}

TEST(JoinedStoreTest, IsNeitherListedNorWritten) {
  const auto store = two_stores();

  EXPECT_FALSE(store->traits().can_list);
  EXPECT_FALSE(store->traits().can_write);
  EXPECT_FALSE(store->list({}, {}));
  EXPECT_FALSE(store->write("0/y", {}, {}));
}

}  // namespace
}  // namespace leat
