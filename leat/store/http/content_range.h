// The Content-Range header.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace leat {

/// "bytes 0-99/1234": the range that a 206 carries.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;              ///< Inclusive; not before `first`.
  std::optional<std::uint64_t> total;  ///< Unknown if it says "*".
};

/// Nullopt for anything else.
std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace leat
