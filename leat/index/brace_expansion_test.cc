#include "leat/index/brace_expansion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

Texts expanded(std::string_view pattern) {
  Result<Texts> texts = expand_braces(pattern);
  if (!texts) ADD_FAILURE() << texts.error().message();
  return texts ? *std::move(texts) : Texts();
}

TEST(BraceExpansionTest, CommasAndRangesAreWhatAShellMakesOfThem) {
  EXPECT_EQ(expanded("a{1,2}b"), (Texts{"a1b", "a2b"}));
  EXPECT_EQ(expanded("{08..11}"), (Texts{"08", "09", "10", "11"}));
  EXPECT_EQ(expanded("{8..11}"), (Texts{"8", "9", "10", "11"}));
  EXPECT_EQ(expanded("{0..10..5}"), (Texts{"0", "5", "10"}));
  EXPECT_EQ(expanded("{2..0}"), (Texts{"2", "1", "0"}));
  EXPECT_EQ(expanded("{-1..1}"), (Texts{"-1", "0", "1"}));
  EXPECT_EQ(expanded("{a..c}"), (Texts{"a", "b", "c"}));
  EXPECT_EQ(expanded("x{,y}"), (Texts{"x", "xy"}));
  EXPECT_EQ(expanded("{a,b{1,2}}"), (Texts{"a", "b1", "b2"}));
  EXPECT_EQ(expanded("{a,b}{c,d}"), (Texts{"ac", "ad", "bc", "bd"}));
  EXPECT_EQ(expanded("s3://b/{train,val}-{000..001}.tar"),
            (Texts{"s3://b/train-000.tar", "s3://b/train-001.tar",
                   "s3://b/val-000.tar", "s3://b/val-001.tar"}));
}

TEST(BraceExpansionTest, OtherBracesStandForThemselves) {
  for (const std::string text :
       {"", "plain", "{", "}", "{}", "{a}", "a}b{c", "{0..}", "{..1}", "{a..1}",
        "{0..1..0}", "{99999999999999999999..1}"}) {
    EXPECT_EQ(expanded(text), Texts{text}) << text;
  }
  EXPECT_EQ(expanded("{a{1,2}}"), (Texts{"{a1}", "{a2}"}));
}

TEST(BraceExpansionTest, ExactlyAMillionIsNotTooMany) {
  EXPECT_EQ(expanded("{000000..999999}").size(), kMostExpansions);
}

TEST(BraceExpansionTest, NothingGrowsPastTheBounds) {
  std::string doubled;
  for (int i = 0; i < 300; ++i) doubled += "{a,b}";
  const std::string wide(300, 'x');
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{a,";
  for (int i = 0; i < 100; ++i) deep += "}";
  const auto message = [](const std::string& pattern) {
    const Result<Texts> texts = expand_braces(pattern);
    EXPECT_FALSE(texts) << pattern;
    return texts ? "" : texts.error().message();
  };

  EXPECT_THAT(message(doubled), HasSubstr("more than 1000000 names"));
  EXPECT_THAT(message("{0..1000000}"), HasSubstr("more than 1000000 names"));
  EXPECT_THAT(message("{0..999999999999999999}"), HasSubstr("1000000 names"));
  EXPECT_THAT(message("{{0..999999},b}"), HasSubstr("1000000 names"));
  EXPECT_THAT(message(wide + "{0..999999}"), HasSubstr("268435456 bytes"));
  EXPECT_THAT(message(deep), HasSubstr("8 braces in braces"));
  EXPECT_THAT(message(std::string(5000, '{')), HasSubstr("5000 bytes"));
  EXPECT_EQ(expanded(std::string(4096, '{')).size(), 1u);
}

}  // namespace
}  // namespace leat
