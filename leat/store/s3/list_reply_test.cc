#include "leat/store/s3/list_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat {
namespace {

std::string listing(std::string_view inside) {
  return "<ListBucketResult>" + std::string(inside) + "</ListBucketResult>";
}

std::string object(std::string_view key, std::string_view size = "1") {
  return "<Contents><Key>" + std::string(key) + "</Key><Size>" +
         std::string(size) + "</Size></Contents>";
}

TEST(ParseListReplyTest, TakesKeysAsTheyAreWithoutEncodingType) {
  const auto page =
      parse_list_reply(listing(object(" ") + object("a+b%20&amp;c")), "");

  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->objects.at(0).key, " ");
  EXPECT_EQ(page->objects.at(1).key, "a+b%20&c");
}

TEST(ParseListReplyTest, RefusesWhatIsNoListing) {
  struct Row {
    std::string body, says;
  };
  const Row rows[] = {
      {"", "not XML"},
      {"<html><body>Welcome</body></html>", "no ListBucketResult"},
      {"<ListBucketResult>", "not XML"},
      {listing(object("p/a", "")), "size"},
      {listing(object("p/a", "-1")), "size"},
      {listing(object("p/a", "1x")), "size"},
      {listing(object("p/a", "18446744073709551616")), "size"},
      {listing(object("q/a")), "prefix"},
      {listing("<Contents><Size>1</Size></Contents>"), "prefix"},
      {listing(object("p/b") + object("p/a") + object("p/b")), "twice"},
      {listing(object("p/a") + object("p/a")), "twice"},
      {listing("<CommonPrefixes><Prefix>/etc/</Prefix></CommonPrefixes>"),
       "prefix"},
      {listing("<IsTruncated>true</IsTruncated>"), "token"},
      {listing(std::string(150'000, ' ') +
               [] {
                 std::string many;
                 for (int i = 0; i < 150'000; ++i) many += "<a/>";
                 return many + many;
               }()),
       "too large"},
  };
  for (const Row& row : rows) {
    const auto page = parse_list_reply(row.body, "p/");

    ASSERT_FALSE(page) << row.says;
    EXPECT_EQ(page.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(page.error().message(), ::testing::HasSubstr(row.says));
  }
}

TEST(ParseListReplyTest, PutsInOrderWhatCameInNone) {
  const auto folded = [](std::string_view prefix) {
    return "<CommonPrefixes><Prefix>" + std::string(prefix) +
           "</Prefix></CommonPrefixes>";
  };

  const auto unsorted = parse_list_reply(
      listing(object("b") + object("a") + folded("d/") + folded("c/")), "");
  const auto sorted = parse_list_reply(listing(object("a") + object("b")), "");

  ASSERT_TRUE(unsorted) << unsorted.error().message();
  EXPECT_FALSE(unsorted->is_sorted);
  EXPECT_EQ(unsorted->objects.at(0).key, "a");
  EXPECT_EQ(unsorted->objects.at(1).key, "b");
  EXPECT_THAT(unsorted->common_prefixes, ::testing::ElementsAre("c/", "d/"));
  EXPECT_TRUE(sorted->is_sorted);
}

TEST(ParseListReplyTest, SurvivesDeepNestingAndAnyChange) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_FALSE(parse_list_reply(deep, ""));

  const std::string good = listing(
      "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken>" +
      object("a") + object("b%20") +
      "<CommonPrefixes><Prefix>c%2F</Prefix></CommonPrefixes>");
  ASSERT_TRUE(parse_list_reply(good, ""));
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    bad.resize(bad.size() - random() % 20);
    (void)parse_list_reply(bad, "");  // Sanitizers judge.
  }
}

}  // namespace
}  // namespace leat
