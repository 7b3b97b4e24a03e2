// One value out of a JSON document, read without building the document.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/json/json_path.h"

namespace leat {

/// The type of the numbers in a value: the narrowest that holds them all.
enum class JsonNumber : std::uint8_t {
  kTruth,  ///< true and false.
  kWhole,  ///< All without point and exponent.
  kReal,
};

/// A number, or arrays of numbers within each other, in C order.
struct JsonNumbers {
  JsonNumber type = JsonNumber::kWhole;
  std::vector<std::int64_t> shape;  ///< Empty: one number.
  std::vector<std::int64_t> whole;  ///< kTruth (0 and 1) and kWhole.
  std::vector<double> real;         ///< kReal.
};

using JsonValue = std::variant<JsonNumbers, std::string>;

/// More numbers than this are no annotation but an array, which has better
/// formats.
inline constexpr std::size_t kMostJsonNumbers = 65'536;
/// A document that nests deeper is refused.
inline constexpr std::size_t kMostJsonDepth = 256;

/// The value at `path`. The whole document is read, and must be sound; of equal
/// keys the last one counts, as in Python.
///
/// Takes memory for the value alone: at most kMostJsonNumbers numbers, and a
/// text no longer than the document.
///
/// Errors:
///   kCorrupt   no JSON; nested too deeply; a value that is no text, number or
///              array of equally long arrays of numbers; a whole number beyond
///              int64; too many numbers
///   kNotFound  there is nothing at `path`
Result<JsonValue> find_json_value(std::span<const std::byte> document,
                                  const JsonPath& path);

}  // namespace leat
