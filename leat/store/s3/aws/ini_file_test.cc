#include "leat/store/s3/aws/ini_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(ParseIniTest, ReadsSectionsValuesCommentsAndNesting) {
  const auto file = parse_ini(
      "\xef\xbb\xbf# a comment\r\n"
      "[default]\r\n"
      "Region = eu-west-1 ; where we are\r\n"
      "secret=a#b=c;d\r\n"
      "; another\n"
      "[ profile\t\"my dev\" ]\n"
      "  indented = 1\n"
      "s3 =\n"
      "  endpoint_url = http://localhost:9000\n"
      "\taddressing_style=path\n"
      "after = 2\n"
      "  continued = line\n"
      "[default] # again\n"
      "region=eu-west-2",
      "config");

  ASSERT_TRUE(file);
  EXPECT_THAT(
      *file,
      ElementsAre(
          Pair("default", ElementsAre(Pair("region", "eu-west-2"),
                                      Pair("secret", "a#b=c;d"))),
          Pair("profile my dev",
               ElementsAre(Pair("after", "2"), Pair("continued", "line"),
                           Pair("indented", "1"), Pair("s3", ""),
                           Pair("s3.addressing_style", "path"),
                           Pair("s3.endpoint_url", "http://localhost:9000")))));
}

TEST(ParseIniTest, NamesTheLineThatIsWrongAndDoesNotQuoteIt) {
  for (const char* text : {"[a]\nSECRET\n", "\nSECRET=1\n", "[a]\n[SECRET\n",
                           "[a]\n=SECRET\n", "[a]\n[ ]SECRET\n"}) {
    const auto file = parse_ini(text, "/home/me/.aws/config");

    ASSERT_FALSE(file) << text;
    EXPECT_EQ(file.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(file.error().message(), HasSubstr("config, line 2: "));
    EXPECT_THAT(file.error().message(), Not(HasSubstr("SECRET")));
  }
}

TEST(ParseIniTest, SurvivesAnyBytes) {
  std::mt19937 random(3);
  constexpr std::string_view kAlphabet("[]=#; \t\r\n\"as3.\0\xff", 16);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    (void)parse_ini(text, "f");  // Sanitizers judge.
  }
}

}  // namespace
}  // namespace leat
