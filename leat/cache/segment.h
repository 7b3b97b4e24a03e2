// One segment: its index and its bodies, by a file descriptor.
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
  /// Reads the header. Nullopt if it is none of ours.
  static std::optional<Segment> open(SegmentFiles::Opened file, FileOps& ops);

  /// The state of the file behind `fd`; nullopt if it cannot be read.
  static std::optional<FileState> state_of(int fd, FileOps& ops);

  const SegmentHeader& header() const { return header_; }
  /// As its writer has it now; as it was last if that cannot be read.
  SegmentHeader header_now() const;
  int fd() const { return file_.fd.get(); }
  bool is_writable() const { return file_.is_writable; }

  /// From now on bodies that begin in the first `most_bytes` are read where
  /// they lie, if the file is memory that lets us (sealed_memory.h).
  void map(std::uint64_t most_bytes);

  /// Fills `into` from `offset` on; 0 or a negated errno.
  int read(std::uint64_t offset, std::span<std::byte> into) const;
  /// The same for a body, which has the length of `into`; -EBADMSG if it is not
  /// the record of that key and checksum.
  int read_body(const RecordKey& key, std::uint64_t offset,
                std::uint32_t body_crc, std::span<std::byte> into) const;

  using Visit = std::function<void(const RecordEntry&)>;
  /// Calls `visit` for each entry after those of earlier calls, and passes over
  /// bad ones, whose number it returns. A bad entry that nothing follows may be
  /// half written yet, and is left for the next call.
  ///
  /// Errors: as SegmentFiles::open(); entries that were visited stay so.
  Result<std::uint64_t> follow(const Visit& visit);
  /// The same of all entries, from the first; moves nothing.
  Result<std::uint64_t> scan(const Visit& visit) const;

  // For the one writer, once follow() has seen all.

  /// True if an entry and a body of this length still fit below `most_bytes`,
  /// or it is empty; one entry is left for each record, to drop it.
  bool has_room(std::uint64_t length_bytes, std::uint64_t most_bytes) const;
  /// Writes its owner into its header, and the room that the owner has leased.
  Result<void> sign(std::uint64_t owner, std::uint64_t leased_bytes);
  /// Writes the body, then its entry: seen whole or not at all. On an error
  /// nothing is there, and the same place is tried next time.
  Result<RecordEntry> append(const RecordKey& key, std::uint64_t source,
                             std::span<const std::byte> body);
  /// Writes that a record is dropped, then punches it out.
  Result<void> drop(const RecordEntry& record);
  /// Punches out [begin, end).
  Result<void> punch(std::uint64_t begin, std::uint64_t end);

  /// The place of the next body.
  std::uint64_t end() const { return end_; }
  std::uint32_t entries() const { return next_entry_; }
  /// Bytes that the file takes now, holes left out.
  std::uint64_t allocated_bytes() const;
  /// The part of those that its header and the entries so far take.
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
