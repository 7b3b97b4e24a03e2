#include "leat/cache/segment_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace leat {
namespace {

constexpr std::uint64_t kHeaderMagic = 0x313047455354454cULL;  // "LETSEG01"
constexpr std::uint32_t kEntryMagic =
    0x7452654c;  // "LeRt", as it stands in the file
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCrcAt = kEntryBytes - 4;

template <class Number>
void put(SegmentBlock& block, std::size_t at, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    block[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <class Number>
Number get(std::span<const std::byte, kEntryBytes> bytes, std::size_t at) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Number>(bytes[at + i]) << (8 * i);
  }
  return value;
}

void seal(SegmentBlock& block) {
  put(block, kCrcAt, crc32c(std::span(block).first(kCrcAt)));
}

bool is_sealed(std::span<const std::byte, kEntryBytes> bytes) {
  return crc32c(bytes.first(kCrcAt)) == get<std::uint32_t>(bytes, kCrcAt);
}

bool lies_in(const SegmentHeader& header, const RecordEntry& entry) {
  return entry.length_bytes > 0 && entry.length_bytes <= kMostRecordBytes &&
         entry.offset % kPageBytes == 0 &&
         entry.offset >= header.data_begin() && entry.offset <= kMostOffset;
}

}  // namespace

SegmentBlock encode(const SegmentHeader& header) {
  SegmentBlock block{};
  put(block, 0, kHeaderMagic);
  put(block, 8, kVersion);
  put(block, 12, header.entry_count);
  put(block, 16, header.id);
  put(block, 24, header.owner);
  put(block, 32, header.leased_bytes);
  seal(block);
  return block;
}

SegmentBlock encode(const RecordEntry& entry) {
  SegmentBlock block{};
  put(block, 0, kEntryMagic);
  put(block, 4, static_cast<std::uint32_t>(entry.kind));
  put(block, 8, entry.key.high);
  put(block, 16, entry.key.low);
  put(block, 24, entry.source);
  put(block, 32, entry.offset);
  put(block, 40, entry.length_bytes);
  put(block, 48, entry.body_crc);
  seal(block);
  return block;
}

std::optional<SegmentHeader> parse_header(
    std::span<const std::byte, kEntryBytes> bytes) {
  if (get<std::uint64_t>(bytes, 0) != kHeaderMagic || !is_sealed(bytes) ||
      get<std::uint32_t>(bytes, 8) != kVersion) {
    return std::nullopt;
  }
  const SegmentHeader header{.id = get<std::uint64_t>(bytes, 16),
                             .owner = get<std::uint64_t>(bytes, 24),
                             .entry_count = get<std::uint32_t>(bytes, 12),
                             .leased_bytes = get<std::uint64_t>(bytes, 32)};
  if (header.entry_count == 0 || header.entry_count > kMostEntries) {
    return std::nullopt;
  }
  return header;
}

FileState file_state(std::span<const std::byte, kEntryBytes> header,
                     std::span<const std::byte, kEntryBytes> first_entry) {
  if (parse_header(header)) return FileState::kGood;
  const bool has_magic = get<std::uint64_t>(header, 0) == kHeaderMagic;
  if (has_magic && is_sealed(header) &&
      get<std::uint32_t>(header, 8) != kVersion) {
    return FileState::kForeign;  // A later version, which knows better.
  }
  const bool has_entry = get<std::uint32_t>(first_entry, 0) == kEntryMagic &&
                         is_sealed(first_entry);
  SegmentBlock mended{};
  std::copy(header.begin(), header.end(), mended.begin());
  put(mended, 0, kHeaderMagic);
  const bool is_ours = has_magic || has_entry || is_sealed(mended);
  return is_ours ? FileState::kDamaged : FileState::kForeign;
}

EntryState parse_entry(std::span<const std::byte, kEntryBytes> bytes,
                       const SegmentHeader& header, RecordEntry& entry) {
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (std::all_of(bytes.begin(), bytes.end(), is_zero)) {
    return EntryState::kEmpty;
  }
  const auto kind = get<std::uint32_t>(bytes, 4);
  if (get<std::uint32_t>(bytes, 0) != kEntryMagic || !is_sealed(bytes) ||
      (kind != static_cast<std::uint32_t>(RecordEntry::Kind::kPut) &&
       kind != static_cast<std::uint32_t>(RecordEntry::Kind::kDrop))) {
    return EntryState::kBad;
  }
  entry = {.kind = static_cast<RecordEntry::Kind>(kind),
           .key = {.high = get<std::uint64_t>(bytes, 8),
                   .low = get<std::uint64_t>(bytes, 16)},
           .source = get<std::uint64_t>(bytes, 24),
           .offset = get<std::uint64_t>(bytes, 32),
           .length_bytes = get<std::uint64_t>(bytes, 40),
           .body_crc = get<std::uint32_t>(bytes, 48)};
  return lies_in(header, entry) ? EntryState::kGood : EntryState::kBad;
}

std::uint32_t record_crc(const RecordKey& key,
                         std::span<const std::byte> body) {
  const std::array<std::uint64_t, 3> name = {key.high, key.low, body.size()};
  static_assert(std::endian::native == std::endian::little);
  return crc32c(body, crc32c(std::as_bytes(std::span(name))));
}

}  // namespace leat
