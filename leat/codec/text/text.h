// Small texts from outside: numbers, UTF-8, and how to show them in a message.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// A whole number in decimal: spaces and line ends around it are passed over, a
/// sign may stand before it.
///
/// Errors:
///   kCorrupt  anything else, or a number beyond int64
Result<std::int64_t> parse_whole_number(std::span<const std::byte> bytes);

/// The same from 0 on. Errors: kCorrupt: anything else, or beyond uint64
Result<std::uint64_t> parse_unsigned_number(std::span<const std::byte> bytes);

/// A number as C and Python write it, "-1.5e3", "inf" and "nan" included;
/// spaces and line ends around it are passed over. The nearest double: 0 if all
/// others are farther.
///
/// Errors:
///   kCorrupt  anything else, or a number beyond double
Result<double> parse_real_number(std::span<const std::byte> bytes);

/// The byte at which `text` stops being UTF-8; nullopt if all of it is.
/// Overlong forms, surrogates and code points beyond U+10FFFF are not UTF-8.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// The beginning of foreign bytes for a message: in quotes, of 40 bytes at
/// most, with all that is not printable ASCII as \x…
std::string quoted(std::span<const std::byte> bytes);

}  // namespace leat
