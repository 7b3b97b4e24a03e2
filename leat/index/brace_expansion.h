// Expands braces: "shard-{0000..0128}.tar", "{train,val}".
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

inline constexpr std::size_t kMostExpansions = 1'000'000;
inline constexpr std::size_t kMostExpandedBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMostPatternBytes = 4096;
inline constexpr std::size_t kMostBraceDepth = 8;

/// All texts that `pattern` expands to, in a shell's order.
///
///   {a,b}       a, then b; may be nested, and one may be empty
///   {08..11} 08 09 10 11; leading zeros set the width of the numbers
///   {0..10..5}  0 5 10
///   {a..c}      a b c
///
/// Braces that hold neither a comma nor a range are literal.
///
/// Errors:
///   kInvalidArgument  more than the bounds above: in texts, in bytes, in depth
Result<std::vector<std::string>> expand_braces(std::string_view pattern);

}  // namespace leat
