#include "leat/codec/json/json_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "leat/base/buffer.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::vector<JsonRow>> rows(const std::string& document,
                                  std::string_view path) {
  LEAT_TRY(const JsonRowsPath parsed, parse_json_rows_path(path));
  const JsonRowsPath paths[] = {parsed};
  LEAT_TRY(auto all, find_json_rows(as_bytes(document), paths));
  return std::move(all[0]);
}

std::string rows_error(const std::string& document, std::string_view path) {
  const auto got = rows(document, path);
  return got ? "" : got.error().message();
}

TEST(JsonRowsTest, ReadsListsAndListsOfObjects) {
  EXPECT_THAT(*rows("[[1, 2.5], [3, 4]]", ""),
              ElementsAre(ElementsAre(1, 2.5), ElementsAre(3, 4)));
  EXPECT_THAT(*rows(R"({"a": {"b": [[]]}})", "a.b"), ElementsAre(IsEmpty()));
  EXPECT_THAT(*rows(R"({"labels": [7, 9]})", "labels"),
              ElementsAre(ElementsAre(7), ElementsAre(9)));
  const std::string coco =
      R"({"annotations": [{"bbox": [1, 2, 3, 4], "category_id": 18},
                          {"category_id": 3, "bbox": [5, 6, 7, 8]}]})";
  EXPECT_THAT(*rows(coco, "annotations[*].bbox"),
              ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(5, 6, 7, 8)));
  EXPECT_THAT(*rows(coco, "annotations[*].category_id"),
              ElementsAre(ElementsAre(18), ElementsAre(3)));
  EXPECT_THAT(*rows(R"([{"box": [1]}])", "[*].box"),
              ElementsAre(ElementsAre(1)));
  EXPECT_THAT(*rows(R"({"annotations": []})", "annotations[*].bbox"),
              IsEmpty());
}

TEST(JsonRowsTest, WhatHasNoRowsIsAnError) {
  EXPECT_THAT(rows_error("{", "a"), HasSubstr("no JSON"));
  EXPECT_THAT(rows_error("{}", "a.b"), HasSubstr("has no a.b"));
  EXPECT_THAT(rows_error(R"({"a": 3})", "a"), HasSubstr("a is no list"));
  EXPECT_THAT(rows_error(R"({"a": [[1, "x"]]})", "a"), HasSubstr("no row"));
  EXPECT_THAT(rows_error(R"({"a": [{"b": [1]}, {}]})", "a[*].b"),
              HasSubstr("has no b"));
  EXPECT_THAT(rows_error("[]", "a[*].b..c"), HasSubstr("is no path"));
  EXPECT_THAT(rows_error(std::string(kMostRowsDocumentBytes + 1, ' '), ""),
              HasSubstr("at most"));
}

}  // namespace
}  // namespace leat
