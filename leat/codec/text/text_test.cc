#include "leat/codec/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using namespace std::string_view_literals;
using ::testing::HasSubstr;

std::string whole_error(std::string_view text) {
  const auto parsed = parse_whole_number(as_bytes(text));
  EXPECT_FALSE(parsed) << text;
  return parsed ? "" : parsed.error().message();
}

TEST(WholeNumberTest, ReadsDigitsASignAndBlanksAround) {
  EXPECT_EQ(*parse_whole_number(as_bytes("0")), 0);
  EXPECT_EQ(*parse_whole_number(as_bytes("281\n")), 281);
  EXPECT_EQ(*parse_whole_number(as_bytes(" \t-7\r\n")), -7);
  EXPECT_EQ(*parse_whole_number(as_bytes("+00042")), 42);
  EXPECT_EQ(*parse_whole_number(as_bytes("9223372036854775807")),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*parse_whole_number(as_bytes("-9223372036854775808")),
            std::numeric_limits<std::int64_t>::min());
}

TEST(WholeNumberTest, RefusesAllElseAndShowsIt) {
  for (const std::string_view text :
       {"", " ", "+", "-", "+-1", "--1", "1 2", "1.0", "0x10", "1_000", "cat",
        "12a", "1e3"}) {
    EXPECT_THAT(whole_error(text), HasSubstr("is no whole number"));
  }
  EXPECT_THAT(whole_error("1\0"sv), HasSubstr("\"1\\x00\" is no"));
  EXPECT_THAT(whole_error("9223372036854775808"), HasSubstr("beyond int64"));
}

TEST(RealNumberTest, ReadsWhatPythonPrints) {
  EXPECT_EQ(*parse_real_number(as_bytes("0.1\n")), 0.1);
  EXPECT_EQ(*parse_real_number(as_bytes("-1.5e3")), -1500.0);
  EXPECT_EQ(*parse_real_number(as_bytes("+7")), 7.0);
  EXPECT_EQ(*parse_real_number(as_bytes(".5")), 0.5);
  EXPECT_EQ(*parse_real_number(as_bytes("-inf")),
            -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*parse_real_number(as_bytes("nan"))));
}

TEST(UnsignedNumberTest, ReadsTheUpperHalfOfItsRange) {
  EXPECT_EQ(*parse_unsigned_number(as_bytes("9223372036854775808")),
            std::uint64_t{1} << 63);
  EXPECT_EQ(*parse_unsigned_number(as_bytes(" +18446744073709551615\n")),
            std::numeric_limits<std::uint64_t>::max());
  for (const auto& [text, why] :
       {std::pair{"18446744073709551616", "beyond uint64"},
        std::pair{"-1", "is no whole number from 0"},
        std::pair{"cat", "is no whole number"}}) {
    const auto parsed = parse_unsigned_number(as_bytes(text));
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().message(), HasSubstr(why));
  }
}

TEST(RealNumberTest, IsZeroNextToZero) {
  const std::string zeros(400, '0');
  for (const std::string& text :
       {std::string("1e-400"), std::string("123456.7E-9999999999999"),
        "0." + zeros + "1", "0." + zeros + "1e+20", "1" + zeros + "e-900"}) {
    const auto parsed = parse_real_number(as_bytes(text));
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, 0.0) << text;
    EXPECT_FALSE(std::signbit(*parsed)) << text;
    EXPECT_TRUE(std::signbit(*parse_real_number(as_bytes("-" + text))));
  }
  EXPECT_EQ(*parse_real_number(as_bytes("5e-324")), 5e-324);
  for (const std::string& text :
       {std::string("1e+400"), std::string("-1e9999999999999"), "1" + zeros,
        "1" + zeros + "e-50", "0." + zeros + "1e900"}) {
    const auto parsed = parse_real_number(as_bytes(text));
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr("beyond float64"));
  }
}

TEST(RealNumberTest, RefusesAllElse) {
  for (const std::string_view text :
       {"", "e3", "1,5", "0x1p3", "nan(1)", "1.5.2", "--1"}) {
    const auto parsed = parse_real_number(as_bytes(text));
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().message(), HasSubstr("is no number"));
  }
  EXPECT_THAT(parse_real_number(as_bytes("1e999")).error().message(),
              HasSubstr("beyond float64"));
}

TEST(Utf8Test, KnowsEveryLengthAndItsBounds) {
  for (const std::string_view text :
       {""sv, "plain\0text"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv,
        "\xed\x9f\xbf"sv, "\xee\x80\x80"sv, "\xef\xbb\xbf"sv,
        "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    EXPECT_EQ(first_invalid_utf8(text), std::nullopt) << text;
  }
}

TEST(Utf8Test, SaysWhereItStopsBeingUtf8) {
  for (const std::string_view bad :
       {"\x80"sv, "\xc0\xaf"sv, "\xc1\xbf"sv, "\xc2"sv, "\xe0\x9f\xbf"sv,
        "\xe1\x80"sv, "\xed\xa0\x80"sv, "\xe2\x28\xa1"sv, "\xf0\x8f\xbf\xbf"sv,
        "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv,
        "\xe2\x82\x28"sv}) {
    EXPECT_EQ(first_invalid_utf8("ab\xc3\xa9" + std::string(bad)), 4u) << bad;
  }
}

TEST(QuotedTest, ShowsTheBeginningOfAnything) {
  EXPECT_EQ(quoted(as_bytes("a\"b\\c\n\xff")), R"("a\"b\\c\x0a\xff")");
  EXPECT_EQ(quoted(as_bytes(std::string(41, 'x'))),
            "\"" + std::string(40, 'x') + "\"...");
}

}  // namespace
}  // namespace leat
