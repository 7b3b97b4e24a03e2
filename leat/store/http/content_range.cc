#include "leat/store/http/content_range.h"

#include <charconv>

namespace leat {
namespace {

/// Takes a number and `after` from the front of `text`.
bool take_number(std::string_view& text, std::uint64_t& number,
                 std::string_view after) {
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (!text.starts_with(after)) return false;
  text.remove_prefix(after.size());
  return true;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  ContentRange range;
  if (!take_number(value, range.first, "-") ||
      !take_number(value, range.last, "/") || range.last < range.first) {
    return std::nullopt;
  }
  if (value == "*") return range;
  std::uint64_t total = 0;
  if (!take_number(value, total, "") || !value.empty() || range.last >= total) {
    return std::nullopt;
  }
  range.total = total;
  return range;
}

}  // namespace leat
