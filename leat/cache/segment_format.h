// The bytes of a segment: one file of a tier.
//
//     page 0                  the header, 64 bytes; the rest of the page is
//     zero entry_count x 64 bytes  the index: one entry for each record that
//     was put
//                             or dropped, in that order; zero where none is yet
//     from data_begin() on    the bodies, each at the start of a page
//
// All numbers are little-endian.
//
//     header  0 magic   8 version   12 entry_count   16 id   24 owner
//             32 leased_bytes
//             60 CRC32C of what is before it
//     entry   0 magic   4 kind   8 key, high   16 key, low   24 source
//             32 offset   40 length   48 CRC32C of key, length and body
//             60 CRC32C of what is before it
//
// The index is append-only, and so are the bodies: no byte of a file is ever
// used twice. Hence a stale entry can at worst point at a hole, and the
// checksum of the body, which covers the key, tells. The entry of a record
// stands in the index alone and not before the body too: so a body of whole
// pages takes no page more, and a look-up is one read, straight into the
// reader's memory. A file is as sparse as its index is empty.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "leat/cache/record_key.h"

namespace leat {

inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::size_t kEntryBytes = 64;
/// The longest body; and the most entries, which bounds what a file can ask a
/// reader to hold.
inline constexpr std::uint64_t kMostRecordBytes = std::uint64_t{1} << 31;
inline constexpr std::uint32_t kMostEntries = 1U << 24;
/// The last place at which a body may begin.
inline constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 43;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// The room of a record in a tier: its pages, its entry and that of its drop.
constexpr std::uint64_t record_cost(std::uint64_t length_bytes) {
  return whole_pages(length_bytes) + 2 * kEntryBytes;
}

struct SegmentHeader {
  std::uint64_t id = 0;     ///< Drawn at random; part of the file's name.
  std::uint64_t owner = 0;  ///< The tier that writes it; drawn at random.
  std::uint32_t entry_count = 0;
  /// The bytes that the owner may fill, in all its segments together; the same
  /// in each.
  std::uint64_t leased_bytes = 0;

  std::uint64_t data_begin() const {
    return kPageBytes + whole_pages(entry_count * kEntryBytes);
  }
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

/// One record, as its segment's index has it.
struct RecordEntry {
  enum class Kind : std::uint32_t { kPut = 1, kDrop = 2 };
  Kind kind = Kind::kPut;
  RecordKey key;
  std::uint64_t source = 0;  ///< Hash of the store that it came from.
  /// The place of the body in the file; whole pages.
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
  std::uint32_t body_crc = 0;
  friend bool operator==(const RecordEntry&, const RecordEntry&) = default;
};

using SegmentBlock = std::array<std::byte, kEntryBytes>;

SegmentBlock encode(const SegmentHeader& header);
SegmentBlock encode(const RecordEntry& entry);

/// Nullopt if the bytes are none: another format, torn, or flipped.
std::optional<SegmentHeader> parse_header(
    std::span<const std::byte, kEntryBytes> bytes);

/// The kind of a file that is named like a segment.
enum class FileState : std::uint8_t {
  kForeign,  ///< None of ours, or of another version.
  kDamaged,  ///< A segment whose header is torn or flipped.
  kGood,
};
/// Judges by its first block and that of its index: if one is damaged, the
/// other still names the owner.
FileState file_state(std::span<const std::byte, kEntryBytes> header,
                     std::span<const std::byte, kEntryBytes> first_entry);

enum class EntryState : std::uint8_t {
  kEmpty,  ///< Nothing was written here yet.
  kBad,    ///< Torn, flipped or hostile; or being written right now.
  kGood,
};
/// Reads an entry of a segment with this header into `entry`. A good one lies
/// on a page past the index and within all bounds above.
EntryState parse_entry(std::span<const std::byte, kEntryBytes> bytes,
                       const SegmentHeader& header, RecordEntry& entry);

/// The checksum of a record: of its key, its length and its body.
std::uint32_t record_crc(const RecordKey& key, std::span<const std::byte> body);

}  // namespace leat
