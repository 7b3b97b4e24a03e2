// A scan is a walk from header to header. Its reads are guesses: if a header,
// with its extensions, does not lie in a read whole, the scan asks for it again
// from its first byte. So nothing is kept between feeds but a few names.

#include "leat/codec/tar/tar_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

/// The name of what these first bytes are instead of a tar archive, if known.
std::optional<std::string_view> known_compression(
    std::span<const std::byte> bytes) {
  using std::string_view_literals::operator""sv;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5>
      kMagics = {{{"\x1f\x8b"sv, "gzip"},
                  {"\x28\xb5\x2f\xfd"sv, "zstd"},
                  {"\xfd"
                   "7zXZ"sv,
                   "xz"},
                  {"BZh"sv, "bzip2"},
                  {"\x04\x22\x4d\x18"sv, "lz4"}}};
  for (const auto& [magic, name] : kMagics) {
    if (as_text(bytes).starts_with(magic)) return name;
  }
  return std::nullopt;
}

}  // namespace

Error TarScanner::at_next(Error error) const {
  return std::move(error).while_doing(fmt::format("at byte {}", next_));
}

std::optional<TarScanner::Want> TarScanner::wants() const {
  if (is_done_) return std::nullopt;
  const std::uint64_t length =
      std::max(least_, mean_ > kLargeMember ? kHeadBytes : kPieceBytes);
  return Want{.offset = next_,
              .length = std::min(length, archive_bytes_ - next_)};
}

Result<void> TarScanner::feed(std::span<const std::byte> bytes,
                              std::vector<Member>& members) {
  LEAT_CHECK(!is_done_ && bytes.size() == wants()->length);
  const std::uint64_t begin = next_;
  least_ = kTarBlockBytes;
  while (!is_done_) {
    const std::uint64_t left = archive_bytes_ - next_;
    if (left < kTarBlockBytes) {
      return at_next(
          corrupt("the archive is cut short: {} bytes are left where a header "
                  "or the end should be",
                  left));
    }
    if (next_ - begin >= bytes.size()) return {};
    const auto rest = bytes.subspan(next_ - begin);
    if (rest.size() < least_) return {};
    if (auto taken = take_header(rest, members); !taken) {
      return at_next(std::move(taken).error());
    }
    if (rest.size() < least_) return {};  // It wants more of this place.
  }
  return {};
}

Result<void> TarScanner::take_header(std::span<const std::byte> rest,
                                     std::vector<Member>& members) {
  const auto block = rest.first(kTarBlockBytes);
  if (is_zero_block(block)) return take_zero_block(rest);
  Result<TarHeader> header = parse_tar_header(block);
  if (!header) {
    if (const auto name = known_compression(block); name && next_ == 0) {
      return invalid(
          "the archive is compressed ({}), so no member can be read alone: "
          "store it uncompressed",
          *name);
    }
    return std::move(header).error();
  }
  switch (header->type) {
    case 'x':
    case 'X':
    case 'g':
    case 'L':
    case 'K':
      return take_extended(*header, rest);
    case 'S':
      return invalid("a sparse member: pack the archive without --sparse");
    case 'M':
      return invalid("a part of a multi-volume archive");
    default:
      return take_member(*std::move(header), members);
  }
}

Result<void> TarScanner::take_zero_block(std::span<const std::byte> rest) {
  const std::uint64_t left = archive_bytes_ - next_;
  if (left >= 2 * kTarBlockBytes) {
    least_ = 2 * kTarBlockBytes;
    if (rest.size() < least_) return {};
    if (!is_zero_block(rest.subspan(kTarBlockBytes, kTarBlockBytes))) {
      return corrupt(
          "a single block of zeros, and more after it: damaged, or several "
          "archives in one file");
    }
  }
  is_done_ = true;
  return {};
}

Result<void> TarScanner::take_extended(const TarHeader& header,
                                       std::span<const std::byte> rest) {
  if (header.size_bytes > kMostExtended) {
    return corrupt("a header of {} bytes", header.size_bytes);
  }
  const std::uint64_t whole = kTarBlockBytes + rounded_up(header.size_bytes);
  if (whole > archive_bytes_ - next_) {
    return corrupt("the archive is cut short within a header");
  }
  if (rest.size() < whole) {
    least_ = whole;
    return {};
  }
  const std::string_view body =
      as_text(rest.subspan(kTarBlockBytes, header.size_bytes));
  switch (header.type) {
    case 'g':
      LEAT_TRY_VOID(parse_pax(body, globals_));
      break;
    case 'L':
      pending_.long_name = body.substr(0, body.find('\0'));
      break;
    case 'K':  // The target of a link.
      break;
    default:
      LEAT_TRY_VOID(parse_pax(body, pending_.pax));
  }
  next_ += whole;
  return {};
}

Result<void> TarScanner::take_member(const TarHeader& header,
                                     std::vector<Member>& members) {
  const Pending pending = std::exchange(pending_, {});
  if (pending.pax.is_sparse || globals_.is_sparse) {
    return invalid("a sparse member: pack the archive without --sparse");
  }
  const auto first_of = [](auto first, auto second, auto third) {
    return first ? *first : second ? *second : third;
  };
  const std::string name =
      pending.pax.path
          ? *pending.pax.path
          : first_of(pending.long_name, globals_.path, header.name);
  const std::uint64_t size_bytes =
      first_of(pending.pax.size_bytes, globals_.size_bytes, header.size_bytes);
  LEAT_TRY_VOID(check_member_name(name));
  if (header.type >= '1' && header.type <= '6') {
    return skip(0);  // A link, a folder or a device: it has no body.
  }
  const std::uint64_t offset = next_ + kTarBlockBytes;
  if (size_bytes > archive_bytes_ - offset) {
    return corrupt(
        "the archive is cut short: member '{}' has {} bytes and {} are left",
        name.substr(0, 200), size_bytes, archive_bytes_ - offset);
  }
  const bool is_file =
      header.type == '0' || header.type == '\0' || header.type == '7';
  // The oldest format had no type for folders but the slash.
  if (is_file && !name.empty() && !name.ends_with('/')) {
    members.push_back({name, offset, size_bytes});
  }
  return skip(size_bytes);
}

Result<void> TarScanner::skip(std::uint64_t size_bytes) {
  // No overflow: a size is at most 2^63 - 1, and lies within the archive.
  const std::uint64_t whole = kTarBlockBytes + rounded_up(size_bytes);
  if (whole > archive_bytes_ - next_) {
    return corrupt("the archive is cut short within the padding of a member");
  }
  next_ += whole;
  mean_ = mean_ - mean_ / 8 + whole / 8;
  return {};
}

}  // namespace leat
