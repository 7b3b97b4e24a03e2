// Every op and parameter there is: the rows of op_table.cc, then those of
// parse_op_kinds() and picture_op_kinds(). Parsing, defaults, messages and help
// are all made from this table.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// The type of a value; on the command line, "/" separates numbers.
enum class ParamKind : std::uint8_t {
  kText,        ///< One of several words.
  kSize,        ///< 224, or [height, width].
  kSide,        ///< 256 for the shorter side, or [height, width].
  kNumber,      ///< 0.5
  kCount,       ///< A whole number above 0.
  kFlag,        ///< true or false.
  kRange,       ///< [low, high]
  kNumbers,     ///< 0.5, or one number for each channel, or "imagenet".
  kPixels,      ///< Whole numbers from 0 on: 4, or as many as the op says.
  kNames,       ///< Names of fields.
  kJitter,      ///< A distance from no change, or [low, high].
  kNumberList,  ///< 0.5, or as many numbers as the op says, or a word.
};

struct ParamInfo {
  std::string_view name;
  ParamKind kind;
  std::string_view default_json;  ///< Empty: must be given.
  std::string_view doc;
};

/// A parameter of every op that draws.
inline constexpr ParamInfo kIndependent = {
    "independent", ParamKind::kFlag, "false",
    "draw for each field by itself, not once for all of a sample"};

struct OpInfo {
  std::string_view name;
  std::string_view doc;
  std::span<const ParamInfo> params;
  /// May be given without name; empty: the first of `params`, or `field` if
  /// there is none.
  std::string_view unnamed = {};
};

/// The parameter of `op` that may be given without its name.
std::string_view unnamed_param(const OpInfo& op);

/// In the order of the documentation.
std::span<const OpInfo> op_table();

/// Null if there is no op with that name.
const OpInfo* find_op(std::string_view name);

/// The parameters that every op has besides its own: `field` and `to`.
std::span<const ParamInfo> common_params();

/// Null if the op has no such parameter of its own or in common.
const ParamInfo* find_param(const OpInfo& op, std::string_view name);

/// "resize, center_crop, …" and "size, interpolation, field, to".
std::string op_names();
std::string param_names(const OpInfo& op);

/// The table as text, for `--help`.
std::string ops_help();

}  // namespace leat
