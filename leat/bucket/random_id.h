// Names that nobody else gives.
#pragma once
#include <cstddef>
#include <string>

namespace leat {

inline constexpr std::size_t kIdDigits = 32;

/// As many hexadecimal digits; no two calls, in any process, give the same, and
/// nobody can guess them.
std::string random_id();

}  // namespace leat
