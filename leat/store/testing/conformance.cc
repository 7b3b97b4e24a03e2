#include "leat/store/testing/conformance.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "leat/base/hash.h"
#include "leat/store/testing/conformance_themes.h"

namespace leat::testing {
namespace {

constexpr std::size_t kMostPages = 1000;

}  // namespace

std::string patterned(std::size_t size, std::uint64_t seed) {
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

void PrintTo(const StoreUnderTest& /*store*/, std::ostream* out) {
  *out << "the store under test";
}

decltype(::testing::ValuesIn(std::vector<StoreUnderTest>())) conforming(
    StoreUnderTest store) {
  join_reads();
  join_lists();
  join_writes();
  join_stops();
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

}  // namespace leat::testing
