#include "leat/store/page_builder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

/// A model of a listing, in the plainest way: the entries in order.
std::vector<std::string> expected_entries(const std::set<std::string>& keys,
                                          const ListRequest& request) {
  std::vector<std::string> entries;
  for (const std::string& key : keys) {
    if (!key.starts_with(request.prefix) || key <= request.start_after) {
      continue;
    }
    const std::size_t at =
        request.delimiter.empty()
            ? std::string::npos
            : key.find(request.delimiter, request.prefix.size());
    const std::string entry =
        at == std::string::npos ? key : key.substr(0, at + 1) + "(folded)";
    if (entries.empty() || entries.back() != entry) entries.push_back(entry);
  }
  return entries;
}

/// Lists page by page, seeking as a driver with an ordered map would.
std::vector<std::string> listed_entries(const std::set<std::string>& keys,
                                        ListRequest request,
                                        std::size_t page_size) {
  std::vector<std::string> entries;
  do {
    PageBuilder page(request, page_size);
    std::vector<std::string> of_page;
    while (!page.is_past_the_end()) {
      const auto next = keys.lower_bound(page.from());
      if (next == keys.end() || !next->starts_with(page.prefix())) break;
      const auto verdict = page.offer(*next);
      if (verdict == PageBuilder::Verdict::kFull) break;
      RC_ASSERT(verdict != PageBuilder::Verdict::kSkip);
      if (verdict == PageBuilder::Verdict::kTake) page.add({.key = *next});
    }
    const ListPage made = std::move(page).finish();
    for (const auto& object : made.objects) of_page.push_back(object.key);
    for (const auto& prefix : made.common_prefixes) {
      of_page.push_back(prefix + "(folded)");
    }
    RC_ASSERT(of_page.size() <= page_size);
    RC_ASSERT(made.resume.empty() || of_page.size() == page_size);
    entries.insert(entries.end(), of_page.begin(), of_page.end());
    request.resume = made.resume;
  } while (!request.resume.empty());
  std::ranges::sort(entries);
  return entries;
}

std::string draw_key() {
  return *rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::element('a', '/', 'b', '\xff')));
}

TEST(PageBuilderTest, ListsAsThePlainestListingDoes) {
  rc::check([] {
    std::set<std::string> keys;
    const int count = *rc::gen::inRange(0, 40);
    for (int i = 0; i < count; ++i) keys.insert(draw_key());
    ListRequest request;
    if (*rc::gen::arbitrary<bool>()) request.delimiter = "/";
    if (*rc::gen::arbitrary<bool>()) request.prefix = draw_key();
    // With folded keys, the meaning of a start within a fold is left open.
    if (request.delimiter.empty() && *rc::gen::arbitrary<bool>()) {
      request.start_after = draw_key();
    }
    const auto page_size = static_cast<std::size_t>(*rc::gen::inRange(1, 10));

    auto expected = expected_entries(keys, request);
    std::ranges::sort(expected);

    RC_ASSERT(listed_entries(keys, request, page_size) == expected);
  });
}

TEST(PageBuilderTest, KnowsWhatComesAfterAPrefix) {
  EXPECT_EQ(after_prefix("ab"), "ac");
  EXPECT_EQ(after_prefix("a\xff\xff"), "b");
  EXPECT_EQ(after_prefix("\xff"), "");
  EXPECT_EQ(after_prefix(""), "");
}

}  // namespace
}  // namespace leat
