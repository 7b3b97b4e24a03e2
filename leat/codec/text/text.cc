#include "leat/codec/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <type_traits>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::string_view kBlank = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Blanks and a plus, which std::from_chars does not take, are gone.
std::string_view number_in(std::span<const std::byte> bytes) {
  std::string_view text = trimmed(as_text(bytes));
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  return text;
}

/// Whether a decimal number that is out of the range of doubles is so by being
/// too small: all of it is behind the point.
bool is_next_to_zero(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  auto power =
      static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (e == std::string_view::npos) return power < 0;
  std::string_view exponent = text.substr(e + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int32_t shift = 0;
  const auto [at, failed] = std::from_chars(
      exponent.data(), exponent.data() + exponent.size(), shift);
  if (failed != std::errc()) return exponent.starts_with('-');
  return power + shift < 0;
}

template <class T>
Result<T> parse_number(std::span<const std::byte> bytes, std::string_view what,
                       std::string_view range) {
  const std::string_view text = number_in(bytes);
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, value);
  // "nan(text)" is C's, and nobody means it.
  if (at != end || text.empty() || text.back() == ')' ||
      failed == std::errc::invalid_argument) {
    return corrupt("{} is no {}", quoted(bytes), what);
  }
  if (failed == std::errc::result_out_of_range) {
    if constexpr (std::is_floating_point_v<T>) {
      if (is_next_to_zero(text)) return text.front() == '-' ? -T{0} : T{0};
    }
    return corrupt("{} is beyond {}", quoted(bytes), range);
  }
  return value;
}

/// How many bytes follow a lead byte, and what the first of them may be.
struct Utf8Rule {
  unsigned char first;
  unsigned char last;
  unsigned char following;
  unsigned char low;
  unsigned char high;
};

// Table 3-7 of the Unicode standard.
constexpr Utf8Rule kUtf8Rules[] = {
    {0x00, 0x7f, 0, 0x00, 0x00}, {0xc2, 0xdf, 1, 0x80, 0xbf},
    {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf},
    {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf},
    {0xf0, 0xf0, 3, 0x90, 0xbf}, {0xf1, 0xf3, 3, 0x80, 0xbf},
    {0xf4, 0xf4, 3, 0x80, 0x8f}};

/// Bytes of the character at the beginning of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  for (const Utf8Rule& rule : kUtf8Rules) {
    if (byte(0) < rule.first || byte(0) > rule.last) continue;
    const std::size_t length = std::size_t{rule.following} + 1;
    if (text.size() < length) return 0;
    if (length > 1 && (byte(1) < rule.low || byte(1) > rule.high)) return 0;
    for (std::size_t i = 2; i < length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    }
    return length;
  }
  return 0;
}

}  // namespace

Result<std::int64_t> parse_whole_number(std::span<const std::byte> bytes) {
  return parse_number<std::int64_t>(bytes, "whole number", "int64");
}

Result<std::uint64_t> parse_unsigned_number(std::span<const std::byte> bytes) {
  return parse_number<std::uint64_t>(bytes, "whole number from 0", "uint64");
}

Result<double> parse_real_number(std::span<const std::byte> bytes) {
  return parse_number<double>(bytes, "number", "float64");
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string quoted(std::span<const std::byte> bytes) {
  constexpr std::size_t kMostBytes = 40;
  std::string text = "\"";
  for (const char c : as_text(bytes).substr(0, kMostBytes)) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}",
                     static_cast<unsigned char>(c));
    }
  }
  return text + (bytes.size() > kMostBytes ? "\"..." : "\"");
}

}  // namespace leat
