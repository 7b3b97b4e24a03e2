// One segment: its index and its bodies, behind a file descriptor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "leat/base/result.h"
#include "leat/cache/sealed_memory.h"
#include "leat/cache/segment_files.h"
#include "leat/cache/segment_format.h"

namespace leat {

/// Threads:  read() and read_body() from any; everything else from one at a
/// time. Lifetime: `ops` outlives it. The file is closed with it, and thereby
///           unlocked.
class Segment {
 public:
  /// Reads the header. Nullopt if the file is not a segment of ours.
  static std::optional<Segment> open(SegmentFiles::Opened file, FileOps& ops);

  /// The state of the file behind `fd`; nullopt if it cannot be read.
  static std::optional<FileState> state_of(int fd, FileOps& ops);

  const SegmentHeader& header() const { return header_; }
  /// The header as it is now; the last one seen if it cannot be read.
  SegmentHeader header_now() const;
  int fd() const { return file_.fd.get(); }
  bool is_writable() const { return file_.is_writable; }

  /// From now on, bodies that begin in the first `most_bytes` are read in
  /// place, if the file is memory that permits it (sealed_memory.h).
  void map(std::uint64_t most_bytes);

  /// Fills `into` from `offset` on; 0 or a negated errno.
  int read(std::uint64_t offset, std::span<std::byte> into) const;
  /// The same for a body of the length of `into`; -EBADMSG if it is not the
  /// record with that key and checksum.
  int read_body(const RecordKey& key, std::uint64_t offset,
                std::uint32_t body_crc, std::span<std::byte> into) const;

  using Visit = std::function<void(const RecordEntry&)>;
  /// Calls `visit` for each entry after those of earlier calls; skips bad ones,
  /// and returns their number. A bad entry that nothing follows may be half
  /// written, and is left for the next call.
  ///
  /// Errors: as SegmentFiles::open(); visited entries stay visited.
  Result<std::uint64_t> follow(const Visit& visit);
  /// The same for all entries from the first; does not advance.
  Result<std::uint64_t> scan(const Visit& visit) const;

  // For the one writer, once follow() has seen everything.

  /// True if an entry and a body of this length still fit below `most_bytes`,
  /// or it is empty. One entry is kept for each record, to drop it.
  bool has_room(std::uint64_t length_bytes, std::uint64_t most_bytes) const;
  /// Writes the owner, and the room that the owner has leased, into the header.
  Result<void> sign(std::uint64_t owner, std::uint64_t leased_bytes);
  /// Writes the body, then its entry, so it is seen whole or not at all. On an
  /// error nothing is added, and the next try uses the same place.
  Result<RecordEntry> append(const RecordKey& key, std::uint64_t source,
                             std::span<const std::byte> body);
  /// Writes an entry that drops a record, then punches it out.
  Result<void> drop(const RecordEntry& record);
  /// Punches out [begin, end).
  Result<void> punch(std::uint64_t begin, std::uint64_t end);

  /// The offset of the next body.
  std::uint64_t end() const { return end_; }
  std::uint32_t entries() const { return next_entry_; }
  /// The bytes that the file takes now, without holes.
  std::uint64_t allocated_bytes() const;
  /// The part of those that the header and the entries so far take.
  std::uint64_t index_bytes() const;
  /// The end of the file.
  std::uint64_t file_bytes() const;

 private:
  Segment(SegmentFiles::Opened file, FileOps& ops, const SegmentHeader& header)
      : file_(std::move(file)),
        ops_(&ops),
        header_(header),
        end_(header.data_begin()) {}
  Result<std::uint64_t> walk(std::uint32_t& at, const Visit& visit) const;
  Result<void> append_entry(const RecordEntry& entry);

  SegmentFiles::Opened file_;
  std::unique_ptr<SealedMapping> mapping_;  // Null: bodies are read by pread().
  FileOps* ops_;
  SegmentHeader header_;
  std::uint32_t next_entry_ = 0;
  std::uint32_t dropped_ = 0;
  std::uint64_t end_;
};

}  // namespace leat
