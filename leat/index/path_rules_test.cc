#include "leat/index/path_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace leat {
namespace {

/// "place:key"; "?" for a path that has to be asked about.
std::string found(const PathRules& rules, std::string_view path) {
  const auto place = rules.find(path);
  if (!place) return "?";
  return std::to_string(place->place) + ":" + std::string(place->key);
}

TEST(PathRulesTest, WithoutRulesEachPathIsAskedAbout) {
  const PathRules rules;

  EXPECT_EQ(found(rules, "a.jpg"), "?");
  EXPECT_EQ(found(rules, "s3://bucket/a.jpg"), "?");
}

TEST(PathRulesTest, APathThatWouldBecomeAnotherIsAskedAbout) {
  PathRules rules;
  rules.learn({.prefix = "", .rest = PathRest::kPlainPath, .place = 2});

  EXPECT_EQ(found(rules, "a/b.jpg"), "2:a/b.jpg");
  EXPECT_EQ(found(rules, "..a/.b/c."), "2:..a/.b/c.");
  for (const std::string path :
       {"../a", "a/../b", "a/./b", "./a", "a//b", "a/", "/a", "a/..", ""}) {
    EXPECT_EQ(found(rules, path), "?") << path;
  }
  EXPECT_EQ(found(rules, std::string_view("a\0b", 3)), "?");
}

TEST(PathRulesTest, InABucketAnyKeyStaysAsItIs) {
  PathRules rules;
  rules.learn({.prefix = "", .rest = PathRest::kAny, .place = 0});

  EXPECT_EQ(found(rules, "a/../b//c%20"), "0:a/../b//c%20");
  EXPECT_EQ(found(rules, "s3://other/a"), "?");
}

TEST(PathRulesTest, TheLongestPrefixCountsAlsoIfNothingIsKnownOfIt) {
  PathRules rules;
  rules.learn({.prefix = "s3://b/set/"});
  rules.learn({.prefix = "s3://b/", .rest = PathRest::kAny, .place = 1});

  EXPECT_EQ(found(rules, "s3://b/x"), "1:x");
  EXPECT_EQ(found(rules, "s3://b/set/x"), "?");
  rules.learn({.prefix = "s3://b/set/", .rest = PathRest::kAny, .place = 0});
  EXPECT_EQ(found(rules, "s3://b/set/x"), "0:x");
  EXPECT_EQ(found(rules, "s3://b/sets/x"), "1:sets/x");
}

TEST(PathRulesTest, UrlsOfHttpAreAskedAboutWhereTheyEscape) {
  PathRules rules;
  rules.learn({.prefix = "http://h/", .rest = PathRest::kPlainUrl, .place = 3});

  EXPECT_EQ(found(rules, "http://h/a/b"), "3:a/b");
  for (const char* const path :
       {"http://h/", "http://h/a%20b", "http://h/a?b", "http://h/a#b"}) {
    EXPECT_EQ(found(rules, path), "?") << path;
  }
}

}  // namespace
}  // namespace leat
