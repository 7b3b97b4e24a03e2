// The results of a scan of shards so far, for the other processes of a node.
//
// The file is a row of entries, appended one after another, little-endian:
//
//     kind     8 bytes  1 the listing, 2 a shard, 3 why the scan failed,
//                       4 its end; 0 a listing that may be too old
//     length   8 bytes  of the payload
//     hash     8 bytes  XXH3-64 of the payload, seeded with the kind and the
//                       hash of the entry before
//     payload           scan_entries.h has it
//
// The first is the listing, so the entries behind it fit this listing alone, in
// this order. An entry that is cut short, or has another hash, is not there
// yet: the next writer begins with it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/error.h"
#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/index/catalogue_lock.h"
#include "leat/index/companions.h"
#include "leat/index/shard_scan.h"

namespace leat {

/// An entry behind the listing.
struct ScanEntry {
  enum class Kind : std::uint8_t {
    kShard,   ///< The next shard's members.
    kFailed,  ///< Why there will be no more.
    kEnd      ///< The end of the scan: its catalogue is kept.
  };
  Kind kind = Kind::kShard;
  ScannedShard shard;
  std::optional<Error> error;
};

/// A file in which one process of a node writes down what it finds in shards,
/// and from which the others take it.
///
/// The writer holds the flock on the file, so the kernel tells when it has
/// died. A reader then takes over at the end of the file.
///
/// Threads: one at a time, but for say_awaited() and is_awaited().
class ScanLog {
 public:
  /// The file that `lock` holds, to be written: start() comes next.
  ///
  /// Errors: kPermissionDenied, kUnavailable: it cannot be opened
  static Result<std::unique_ptr<ScanLog>> write(const std::string& path,
                                                CatalogueLock lock);

  /// Reads what a living process writes; null if none does, or not so far.
  static std::unique_ptr<ScanLog> read(const std::string& path);

  /// Removes a file that nobody writes any more, and that nobody needs: there
  /// is a catalogue.
  static void remove_left(const std::string& path);

  ~ScanLog() = default;
  ScanLog(const ScanLog&) = delete;
  ScanLog& operator=(const ScanLog&) = delete;

  /// The shards as they were listed.
  const SortedObjects& objects() const { return objects_; }

  /// The next entry; nullopt while it is not there. For a writer, the end and a
  /// failure belong to another scan, and are not there.
  std::optional<ScanEntry> next();
  /// next() begins with the first shard again.
  void rewind();

  enum class Turn : std::uint8_t {
    kOthers,  ///< Somebody writes.
    kOurs,    ///< This process does, from now on.
    kNobodys  ///< The file is gone; everyone goes on alone.
  };
  /// Tells which process writes: this one, if nobody else is left. Returns at
  /// once.
  Turn take_turn();
  /// Holds the lock, and has not left the file.
  bool is_writer() const { return lock_.has_value(); }

  /// Keeps what the dead have left from being read until start().
  /// REQUIRES: is_writer().
  void hide() const;
  /// Begins with these objects, or goes on with the log of a dead process if
  /// that has the same. REQUIRES: is_writer().
  ///
  /// Errors: kResourceExhausted, kUnavailable: it cannot be written
  Result<void> start(const SortedObjects& objects);

  /// Adds an entry behind the last that next() gave, in the place of others.
  ///
  /// REQUIRES: is_writer().
  /// Errors: kResourceExhausted, kUnavailable: it cannot be written
  Result<void> append(const ScannedShard& shard);
  Result<void> append(const Error& error);
  /// Says that the scan has ended and its catalogue is kept, and removes the
  /// file, which those who have it open go on reading. REQUIRES: is_writer().
  void end();
  /// Leaves the file to any process that wants to write. REQUIRES: is_writer().
  void leave() { lock_.reset(); }
  /// Removes the file unfinished: everyone goes on alone. REQUIRES:
  /// is_writer().
  void remove();

  /// Tells who writes that a reader waits for the next entry, or no longer.
  /// Ends with this process.
  void say_awaited(bool is_awaited) const;
  /// Whether some reader waits; true where nobody can know.
  bool is_awaited() const;

 private:
  ScanLog(std::string path, OwnedFd file);
  struct RawEntry;
  std::optional<RawEntry> read_entry();
  bool read_listing();
  bool is_replaced() const;
  Result<void> append(std::uint64_t kind, std::string_view payload);

  const std::string path_;
  const OwnedFd file_;
  std::optional<CatalogueLock> lock_;
  SortedObjects objects_;
  std::uint64_t listing_hash_ = 0;
  std::uint64_t shards_at_ = 0;  ///< The start of the entry behind the listing.
  std::uint64_t next_at_ = 0;
  std::uint64_t hash_ = 0;  ///< The hash of the entry before next_at_.
  std::size_t shards_given_ = 0;
};

}  // namespace leat
