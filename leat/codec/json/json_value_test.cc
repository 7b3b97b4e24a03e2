#include "leat/codec/json/json_value.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<JsonValue> find(std::string_view document, std::string_view path) {
  LEAT_TRY(const JsonPath steps, parse_json_path(path));
  return find_json_value(as_bytes(document), steps);
}

JsonNumbers numbers(std::string_view document, std::string_view path = "") {
  const auto found = find(document, path);
  EXPECT_TRUE(found) << document << ": " << found.error().message();
  if (!found || !std::holds_alternative<JsonNumbers>(*found)) return {};
  return std::get<JsonNumbers>(*found);
}

std::string text(std::string_view document, std::string_view path = "") {
  const auto found = find(document, path);
  EXPECT_TRUE(found) << document << ": " << found.error().message();
  if (!found || !std::holds_alternative<std::string>(*found)) return "no text";
  return std::get<std::string>(*found);
}

std::string value_error(std::string_view document, std::string_view path = "") {
  const auto found = find(document, path);
  EXPECT_FALSE(found) << document;
  return found ? "" : found.error().message();
}

TEST(JsonPathTest, ReadsKeysAndIndices) {
  for (const char* path : {"", "a", "a.b", "a.b[0].c", "[2]", "[1][2]",
                           "a[\"b.c\"].d", "a b.c-d", "[\"\"]"}) {
    const auto steps = parse_json_path(path);
    ASSERT_TRUE(steps) << steps.error().message();
    EXPECT_EQ(to_string(*steps), path);
  }
}

TEST(JsonPathTest, SaysWhereItStopsBeingAPath) {
  for (const char* path :
       {".", ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a[-1]", "[0]a", "a]",
        "a[\"b]", "a[1", "a[99999999999999999999]"}) {
    const auto steps = parse_json_path(path);
    ASSERT_FALSE(steps) << path;
    EXPECT_EQ(steps.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(steps.error().message(), HasSubstr("is no path at"));
  }
  std::string deep = "a";
  for (int i = 0; i < 64; ++i) deep += ".a";
  EXPECT_FALSE(parse_json_path(deep));
}

TEST(JsonValueTest, FindsScalarsWhereverTheyAre) {
  const char* document =
      R"({"a": [1, {"b": -7, "c": [2.5, "x"]}], "d": "\u00e9\n", "e": true,
          "f": {"a": 3}, "": 4})";

  EXPECT_THAT(numbers(document, "a[0]").whole, ElementsAre(1));
  EXPECT_THAT(numbers(document, "a[0]").shape, IsEmpty());
  EXPECT_THAT(numbers(document, "a[1].b").whole, ElementsAre(-7));
  EXPECT_THAT(numbers(document, "a[1].c[0]").real, ElementsAre(2.5));
  EXPECT_EQ(text(document, "a[1].c[1]"), "x");
  EXPECT_EQ(text(document, "d"), "\xc3\xa9\n");
  EXPECT_EQ(numbers(document, "e").type, JsonNumber::kTruth);
  EXPECT_THAT(numbers(document, "e").whole, ElementsAre(1));
  EXPECT_THAT(numbers(document, "f.a").whole, ElementsAre(3));
  EXPECT_THAT(numbers(document, "[\"\"]").whole, ElementsAre(4));
}

TEST(JsonValueTest, TakesAWholeDocumentWithoutAPath) {
  EXPECT_THAT(numbers(" 12\n").whole, ElementsAre(12));
  EXPECT_THAT(numbers("-9223372036854775808").whole,
              ElementsAre(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(text("\"cat\""), "cat");
  EXPECT_THAT(numbers("[1, 2, 3]").shape, ElementsAre(3));
  EXPECT_THAT(numbers("\xef\xbb\xbf[1]").shape, ElementsAre(1));
}

TEST(JsonValueTest, GathersArraysWithinArrays) {
  const JsonNumbers boxes =
      numbers(R"({"boxes": [[1,2,3],[4,5,6.5]]})", "boxes");
  EXPECT_EQ(boxes.type, JsonNumber::kReal);
  EXPECT_THAT(boxes.shape, ElementsAre(2, 3));
  EXPECT_THAT(boxes.real, ElementsAre(1, 2, 3, 4, 5, 6.5));
  EXPECT_THAT(boxes.whole, IsEmpty());

  EXPECT_THAT(numbers("[]").shape, ElementsAre(0));
  EXPECT_THAT(numbers("[[],[]]").shape, ElementsAre(2, 0));
  EXPECT_THAT(numbers("[[[1]],[[2]]]").shape, ElementsAre(2, 1, 1));
  EXPECT_THAT(numbers("[true,false]").whole, ElementsAre(1, 0));
  EXPECT_THAT(numbers("[[5],[6]]", "[1]").whole, ElementsAre(6));
  EXPECT_THAT(numbers("[[5],[6],7]", "[2]").whole, ElementsAre(7));
}

TEST(JsonValueTest, OfEqualKeysTheLastOneCounts) {
  EXPECT_THAT(numbers(R"({"a": 1, "a": 2})", "a").whole, ElementsAre(2));
  EXPECT_THAT(numbers(R"({"a": {"b": 1}, "a": {"b": 2}})", "a.b").whole,
              ElementsAre(2));
  EXPECT_THAT(value_error(R"({"a": {"b": 1}, "a": {}})", "a.b"),
              HasSubstr("has no a.b"));
  EXPECT_THAT(value_error(R"({"a": {"b": 1}, "a": 5})", "a.b"),
              HasSubstr("has no a.b"));
  EXPECT_THAT(value_error(R"({"a": {"b": 1}, "a": "b"})", "a.b"),
              HasSubstr("has no a.b"));
}

TEST(JsonValueTest, SaysWhatIsNotThere) {
  const auto absent = find(R"({"a": [1, 2], "b": {"c": 3}})", "a[2]");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(absent.error().message(), HasSubstr("has no a[2]"));
  for (const char* path : {"a.c", "b[0]", "b.c.d", "c", "[0]"}) {
    EXPECT_THAT(value_error(R"({"a": [1, 2], "b": {"c": 3}})", path),
                HasSubstr(fmt::format("has no {}", path)));
  }
}

TEST(JsonValueTest, SaysWhatNoArrayCanBe) {
  EXPECT_THAT(value_error(R"({"a": {"b": 1}})", "a"),
              HasSubstr("is an object"));
  EXPECT_THAT(value_error(R"({"a": null})", "a"), HasSubstr("a is null"));
  EXPECT_THAT(value_error("[1, null]"), HasSubstr("null in it"));
  EXPECT_THAT(value_error(R"(["x"])"), HasSubstr("array of texts"));
  EXPECT_THAT(value_error("[{}]"), HasSubstr("array of objects"));
  EXPECT_THAT(value_error("[1, true]"), HasSubstr("mixes true"));
  for (const char* uneven :
       {"[1,[2]]", "[[1],2]", "[[1],[2,3]]", "[[],1]", "[[],[1]]", "[[[]],[]]",
        "[[],[[]]]", "[[1,2],[]]"}) {
    EXPECT_THAT(value_error(uneven), HasSubstr("unequal")) << uneven;
  }
  EXPECT_THAT(value_error("[[[[[[[[[1]]]]]]]]]"), HasSubstr("more than 8"));
  EXPECT_THAT(value_error("[1, 9223372036854775808]"),
              HasSubstr("beyond int64"));
  EXPECT_THAT(value_error("123456789012345678901234"),
              HasSubstr("beyond int64"));
}

TEST(JsonValueTest, LeavesAloneWhatNobodyAskedFor) {
  const char* document =
      R"({"id": 18446744073709551615, "n": null, "o": [{"x": []}], "a": 1})";
  EXPECT_THAT(numbers(document, "a").whole, ElementsAre(1));
}

TEST(JsonValueTest, ReadsTheWholeDocumentEvenBehindTheValue) {
  for (const char* bad :
       {"", "{", "{\"a\": 1", "{\"a\": 1,}", "{\"a\": 1} x", "{\"a\": 1, b}",
        "{\"a\": 1, \"b\": NaN}", "{\"a\": 1, \"b\": \"\xff\"}",
        "{\"a\": 1, \"b\": 1e999}"}) {
    const auto found = find(bad, "a");
    ASSERT_FALSE(found) << bad;
    EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(found.error().message(), HasSubstr("no JSON from byte"));
    EXPECT_EQ(found.error().message().find('\xff'), std::string::npos);
  }
}

TEST(JsonValueTest, BoundsDepthAndSize) {
  const std::string deep(100'000, '[');
  EXPECT_THAT(value_error(deep, "a"), HasSubstr("nested more than 256"));
  std::string within(256, '[');
  within += std::string(256, ']');
  EXPECT_THAT(value_error(within, "a"), HasSubstr("has no a"));

  std::string most = "[1";
  for (std::size_t i = 1; i < kMostJsonNumbers; ++i) most += ",1";
  EXPECT_THAT(numbers(most + "]").shape, ElementsAre(65'536));
  EXPECT_THAT(value_error(most + ",1]"), HasSubstr("more than 65536"));
}

}  // namespace
}  // namespace leat
