#include "leat/bucket/byte_range.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace leat {
namespace {

/// Digits and nothing else; a number past 2^64 counts as 2^64 - 1.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || rest != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) return UINT64_MAX;
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

RangeAnswer suffix(std::uint64_t wanted, std::uint64_t object_bytes) {
  const std::uint64_t size = std::min(wanted, object_bytes);
  if (size == 0) return Unsatisfiable();
  return RequestedRange{object_bytes - size, size};
}

}  // namespace

RangeAnswer parse_range(std::string_view header, std::uint64_t object_bytes) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return WholeObject();
  const std::string_view spec = header.substr(kUnit.size());
  const std::size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return WholeObject();
  const std::string_view first = spec.substr(0, dash);
  const std::string_view last = spec.substr(dash + 1);

  if (first.empty()) {
    const auto wanted = parse_number(last);
    return wanted ? suffix(*wanted, object_bytes) : WholeObject();
  }
  const auto begin = parse_number(first);
  const auto end =
      last.empty() ? std::optional(UINT64_MAX) : parse_number(last);
  if (!begin || !end || *end < *begin) return WholeObject();
  if (*begin >= object_bytes) return Unsatisfiable();
  // Written so that a last byte of 2^64 - 1 cannot wrap around.
  return RequestedRange{*begin, std::min(*end, object_bytes - 1) - *begin + 1};
}

}  // namespace leat
