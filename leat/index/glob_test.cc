#include "leat/index/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace leat {
namespace {

bool matches(std::string_view pattern, std::string_view key) {
  return Glob::parse(pattern)->matches(key);
}

TEST(GlobTest, WildcardsStayWithinAPart) {
  EXPECT_TRUE(matches("*.tar", "0.tar"));
  EXPECT_FALSE(matches("*.tar", "a/0.tar"));
  EXPECT_FALSE(matches("*.tar", "0.tar.gz"));
  EXPECT_TRUE(matches("a/*/c-*.jpg", "a/b/c-1.jpg"));
  EXPECT_TRUE(matches("?.tar", "0.tar"));
  EXPECT_FALSE(matches("?.tar", "10.tar"));
  EXPECT_FALSE(matches("a?b", "a/b"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches("*a*b*", "xxbxxaxx"));
  EXPECT_TRUE(matches("*ab", "aab"));
}

TEST(GlobTest, TwoStarsAreAnyNumberOfParts) {
  EXPECT_TRUE(matches("**/*.tar", "0.tar"));
  EXPECT_TRUE(matches("**/*.tar", "a/b/c/0.tar"));
  EXPECT_TRUE(matches("a/**", "a/b/c"));
  EXPECT_TRUE(matches("a/**", "a"));
  EXPECT_TRUE(matches("a/**/z", "a/z"));
  EXPECT_TRUE(matches("a/**/z", "a/b/z/c/z"));
  EXPECT_FALSE(matches("a/**/z", "b/z"));
  EXPECT_TRUE(matches("**/b/**/d", "a/b/c/b/d"));
  EXPECT_FALSE(matches("**.tar", "a/0.tar"));
}

TEST(GlobTest, SetsHoldCharactersAndRanges) {
  EXPECT_TRUE(matches("[0-3a].tar", "2.tar"));
  EXPECT_TRUE(matches("[0-3a].tar", "a.tar"));
  EXPECT_FALSE(matches("[0-3a].tar", "4.tar"));
  EXPECT_TRUE(matches("[!0-3].tar", "4.tar"));
  EXPECT_FALSE(matches("[!0-3].tar", "3.tar"));
  EXPECT_TRUE(matches("[*]x", "*x"));
  EXPECT_FALSE(matches("[*]x", "yx"));
  EXPECT_TRUE(matches("[]]", "]"));
  EXPECT_TRUE(matches("a[b", "a[b"));
  EXPECT_TRUE(matches("[\x80-\xff]", "\xc3"));
}

TEST(GlobTest, OnePartIsLookedForInEveryFolder) {
  EXPECT_TRUE(Glob::parse("*.csv")->matches_anywhere("a/b/x.csv"));
  EXPECT_TRUE(Glob::parse("*.csv")->matches_anywhere("x.csv"));
  EXPECT_FALSE(Glob::parse("a/*.csv")->matches_anywhere("b/a/x.csv"));
  EXPECT_TRUE(Glob::parse("**")->matches_anywhere("b/a/x.csv"));
}

TEST(GlobTest, HostilePatternsTakeNoLongerThanTheirLengths) {
  std::string stars;
  std::string parts;
  for (int i = 0; i < 1000; ++i) stars += "*a";
  for (int i = 0; i < 800; ++i) parts += "**/a/";
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "a/";

  EXPECT_FALSE(matches(stars + "b", std::string(1024, 'a')));
  EXPECT_FALSE(matches(parts + "b", deep + "c"));
  EXPECT_FALSE(matches("*" + std::string(4000, '['), std::string(1024, '[')));
  EXPECT_FALSE(Glob::parse(""));
  EXPECT_FALSE(Glob::parse(std::string(5000, '*')));
}

}  // namespace
}  // namespace leat
