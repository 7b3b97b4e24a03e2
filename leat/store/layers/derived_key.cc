#include "leat/store/layers/derived_key.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::string_view kMark = "#leat:made;";
/// No object is larger.
constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
constexpr std::string_view kDigits = "0123456789abcdef";

Error refuse(std::string_view key) {
  return corrupt(std::string(key) +
                 ": no name of a derived object; make the catalogue again "
                 "(refresh=\"always\")");
}

/// ETags and columns may have anything in their names, even a mark.
std::string as_hex(std::string_view text) {
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string> of_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const std::size_t high = kDigits.find(hex[i]);
    const std::size_t low = kDigits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return std::nullopt;
    }
    text += static_cast<char>(high << 4 | low);
  }
  return text;
}

/// Cuts off what stands before the next semicolon.
std::optional<std::string_view> take(std::string_view& rest) {
  const std::size_t end = rest.find(';');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return taken;
}

bool take_number(std::string_view& rest, std::uint64_t& number) {
  const auto text = take(rest);
  if (!text) return false;
  const char* const end = text->data() + text->size();
  const auto [stopped, failed] = std::from_chars(text->data(), end, number);
  return failed == std::errc() && stopped == end && number < kMost;
}

/// Reads the ranges behind the part; `rest` ends with the last of them. A
/// source is the key's but for some letters at its end: a joined store puts the
/// number of a place in front of the whole name, and so in front of each
/// source.
bool take_ranges(std::string_view& rest, DerivedKey& key) {
  std::uint64_t bytes = key.length_bytes;
  while (!rest.empty()) {
    DerivedKey::Range range;
    if (!take_number(rest, range.offset) ||
        !take_number(rest, range.length_bytes) || range.length_bytes == 0) {
      return false;
    }
    const auto etag = take(rest);
    std::uint64_t cut = 0;
    if (!etag || !take_number(rest, cut) || cut > key.source.size()) {
      return false;
    }
    const auto end = take(rest);
    auto etag_text = of_hex(*etag);
    const auto end_text = end ? of_hex(*end) : std::nullopt;
    if (!etag_text || !end_text) return false;
    range.etag = *std::move(etag_text);
    if (cut != 0 || !end_text->empty()) {
      range.source = key.source.substr(0, key.source.size() - cut) + *end_text;
    }
    bytes += range.length_bytes;
    if (bytes >= kMost) return false;
    key.also.push_back(std::move(range));
  }
  return true;
}

}  // namespace

std::uint64_t DerivedKey::source_bytes() const {
  std::uint64_t bytes = length_bytes;
  for (const Range& range : also) bytes += range.length_bytes;
  return bytes;
}

std::string DerivedKey::text() const {
  std::string text = source;
  text += kMark;
  for (const std::uint64_t number :
       {offset, length_bytes, notes_offset, notes_bytes, size_bytes}) {
    text += std::to_string(number);
    text += ';';
  }
  text += as_hex(etag) + ';' + as_hex(part);
  if (!also.empty()) text += ';';
  for (const Range& range : also) {
    const std::string& other = range.source.empty() ? source : range.source;
    const auto common = static_cast<std::size_t>(
        std::ranges::mismatch(source, other).in1 - source.begin());
    text += std::to_string(range.offset) + ';' +
            std::to_string(range.length_bytes) + ';' + as_hex(range.etag) +
            ';' + std::to_string(source.size() - common) + ';' +
            as_hex(std::string_view(other).substr(common)) + ';';
  }
  return text;
}

Result<std::optional<DerivedKey>> DerivedKey::parse(std::string_view key) {
  const std::size_t mark = key.rfind(kMark);
  if (mark == std::string_view::npos) return std::optional<DerivedKey>();
  DerivedKey parsed;
  parsed.source = key.substr(0, mark);
  std::string_view rest = key.substr(mark + kMark.size());
  for (std::uint64_t* const number :
       {&parsed.offset, &parsed.length_bytes, &parsed.notes_offset,
        &parsed.notes_bytes, &parsed.size_bytes}) {
    if (!take_number(rest, *number)) return refuse(key);
  }
  const auto hex = take(rest);
  const auto etag = hex ? of_hex(*hex) : std::nullopt;
  const std::size_t part_end = std::min(rest.find(';'), rest.size());
  const auto part = of_hex(rest.substr(0, part_end));
  rest.remove_prefix(std::min(part_end + 1, rest.size()));
  if (!etag || !part || parsed.source.empty() || parsed.length_bytes == 0) {
    return refuse(key);
  }
  parsed.etag = *etag;
  parsed.part = *part;
  if (!take_ranges(rest, parsed)) return refuse(key);
  return std::optional(std::move(parsed));
}

bool is_derived_key(std::string_view key) {
  return key.find(kMark) != std::string_view::npos;
}

}  // namespace leat
