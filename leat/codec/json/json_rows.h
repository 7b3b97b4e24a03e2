// Lists of rows of numbers out of a JSON document: boxes, keypoints, labels.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/json/json_path.h"

namespace leat {

/// The path of the rows: "boxes" is a list of rows, and "annotations[*].bbox"
/// has one in each object of a list.
struct JsonRowsPath {
  JsonPath list;
  std::optional<JsonPath> of_each;  ///< Behind the [*], if there is one.
};

/// Errors: kInvalidArgument, as parse_json_path()
Result<JsonRowsPath> parse_json_rows_path(std::string_view text);

/// A row; for a number alone, that number.
using JsonRow = std::vector<double>;

/// A longer document is no list of annotations of one picture: the document is
/// built in memory, in up to 30 times its length.
inline constexpr std::size_t kMostRowsDocumentBytes = 2 << 20;

/// The rows at each of `paths`.
///
/// Errors:
///   kCorrupt   no JSON, a longer document, or no list of rows of numbers there
///   kNotFound  there is nothing at one of the paths
Result<std::vector<std::vector<JsonRow>>> find_json_rows(
    std::span<const std::byte> document, std::span<const JsonRowsPath> paths);

}  // namespace leat
