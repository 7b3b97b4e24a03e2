#include "leat/codec/tar/tar_header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/text.h"

namespace leat {
namespace {

// POSIX.1-1988 (ustar), the fields that are read here.
constexpr std::size_t kNameAt = 0;
constexpr std::size_t kNameBytes = 100;
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeBytes = 12;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kTarChecksumBytes = 8;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;
constexpr std::size_t kPrefixAt = 345;
constexpr std::size_t kPrefixBytes = 155;
constexpr std::string_view kUstarMagic{"ustar\0", 6};  // GNU's has a blank.

constexpr std::uint64_t kMostSize = std::numeric_limits<std::int64_t>::max();

std::string_view until_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

/// Digits base 8 between blanks, ended by a blank, a NUL or the field's end.
std::optional<std::uint64_t> parse_octal(std::string_view field) {
  field = until_nul(field);
  const std::size_t begin =
      std::min(field.find_first_not_of(' '), field.size());
  field.remove_prefix(begin);
  field = field.substr(0, field.find(' '));
  if (field.empty()) return 0;
  return number_from<std::uint64_t>(field, 8);
}

/// Octal, or GNU's base 256 where the first byte is 0x80.
std::optional<std::uint64_t> parse_size(std::string_view field) {
  if ((static_cast<unsigned char>(field.front()) & 0x80) == 0) {
    return parse_octal(field);
  }
  // 0xff would be a negative number; the other bits would be 88 bits and more.
  if (static_cast<unsigned char>(field.front()) != 0x80) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : field.substr(1)) {
    if (value > kMostSize >> 8) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

/// The sum of all bytes, the checksum field taken as blanks. Some old writers
/// summed signed bytes.
bool checksum_matches(std::span<const std::byte> block) {
  const auto said =
      parse_octal(as_text(block.subspan(kChecksumAt, kTarChecksumBytes)));
  if (!said) return false;
  std::uint64_t sum = 0;
  std::int64_t signed_sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_blank =
        i >= kChecksumAt && i < kChecksumAt + kTarChecksumBytes;
    const auto byte =
        is_blank ? std::uint8_t{' '} : static_cast<std::uint8_t>(block[i]);
    sum += byte;
    signed_sum += static_cast<std::int8_t>(byte);
  }
  return *said == sum || static_cast<std::int64_t>(*said) == signed_sum;
}

}  // namespace

bool is_zero_block(std::span<const std::byte> block) {
  return std::ranges::all_of(
      block, [](std::byte byte) { return byte == std::byte{}; });
}

Result<TarHeader> parse_tar_header(std::span<const std::byte> block) {
  if (!checksum_matches(block)) {
    return corrupt("no tar header: its checksum does not match");
  }
  const std::string_view text = as_text(block);
  const auto size = parse_size(text.substr(kSizeAt, kSizeBytes));
  if (!size || *size > kMostSize) {
    return corrupt("a tar header whose size is no number");
  }
  TarHeader header;
  header.type = text[kTypeAt];
  header.size_bytes = *size;
  if (text.substr(kMagicAt, kUstarMagic.size()) == kUstarMagic) {
    header.name = until_nul(text.substr(kPrefixAt, kPrefixBytes));
    if (!header.name.empty()) header.name.push_back('/');
  }
  header.name += until_nul(text.substr(kNameAt, kNameBytes));
  return header;
}

Result<void> parse_pax(std::string_view body, PaxRecords& records) {
  const auto parse_number = [](std::string_view text) {
    auto number = number_from<std::uint64_t>(text);
    if (number && *number > kMostSize) number.reset();
    return number;
  };
  while (!body.empty()) {
    const std::size_t blank = body.find(' ');
    const auto length = parse_number(body.substr(0, blank));
    if (blank == std::string_view::npos || !length || *length <= blank + 1 ||
        *length > body.size() || body[*length - 1] != '\n') {
      return corrupt("a pax header with a broken record");
    }
    const std::string_view record = body.substr(blank + 1, *length - blank - 2);
    body.remove_prefix(*length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      return corrupt("a pax header with a record without '='");
    }
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      records.path = value;
    } else if (key == "size") {
      records.size_bytes = parse_number(value);
      if (!records.size_bytes) {
        return corrupt("a pax header whose size is no number");
      }
    } else if (key.starts_with("GNU.sparse.")) {
      records.is_sparse = true;
    }
  }
  return {};
}

Result<void> check_member_name(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return corrupt(
        "member '{}' {}: pack the archive again with names below its folder",
        name.substr(0, 200), why);
  };
  if (name.find('\0') != std::string_view::npos) {
    return refuse("has a NUL in its name");
  }
  if (name.starts_with('/')) return refuse("has an absolute name");
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (rest.substr(0, slash) == "..")
      return refuse("points out of its folder");
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return {};
}

}  // namespace leat
