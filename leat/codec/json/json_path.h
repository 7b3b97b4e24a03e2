// The path of a value in a JSON document.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The key of an object, or the index into an array.
using JsonStep = std::variant<std::string, std::uint64_t>;

/// From the outside in; empty is the whole document.
using JsonPath = std::vector<JsonStep>;

/// Reads "a.b[0].c", "[2]" or "". A key is anything without dots and brackets;
/// others are written in quotes: a["b.c"].
///
/// Errors:
///   kInvalidArgument  the text is not a path; the message says where
Result<JsonPath> parse_json_path(std::string_view text);

/// Writes the path as parse_json_path() reads it.
std::string to_string(const JsonPath& path);

}  // namespace leat
