// The place of a tier's segments: files of a folder, or memory.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/cache/file_ops.h"
#include "leat/cache/segment_format.h"

namespace leat {

/// Tries to become the one writer of the file behind `fd`: a flock, which the
/// kernel releases when the process ends.
bool try_lock_segment(int fd);

/// An id for a segment or a writer: random, so that no two are alike.
std::uint64_t draw_id();

/// Locks a folder for as long as the descriptor is open. Nullopt if another
/// process holds the lock for too long, or the folder cannot be opened; no
/// descriptor if the file system has no locks.
std::optional<OwnedFd> lock_folder(const std::string& path, FileOps& ops);

/// Finds the segments that others have made, and makes new ones.
///
/// Threads: one at a time.
class SegmentFiles {
 public:
  struct Opened {
    OwnedFd fd;
    bool is_writable = false;
  };

  virtual ~SegmentFiles() = default;

  /// Makes a segment with this header, and locks it.
  ///
  /// Errors:
  ///   kPermissionDenied   nothing can be made there
  ///   kResourceExhausted  no room, or no more files may be open
  ///   kUnavailable        anything else that the system says
  virtual Result<Opened> create(const SegmentHeader& header) = 0;

  /// The ids of all segments that exist now, ours included, and perhaps of some
  /// that were removed. Removes what a dead process left half made.
  ///
  /// Errors: as create(); kNotFound
  virtual Result<std::vector<std::uint64_t>> list() = 0;

  /// Opens a segment of another writer, which the caller does not have open.
  /// Errors: as list()
  virtual Result<Opened> open(std::uint64_t id) = 0;

  /// The room of a segment, whether or not it can be opened.
  virtual std::uint64_t allocated_bytes(std::uint64_t /*id*/) const {
    return 0;
  }

  /// REQUIRES: the caller holds its lock. Readers of the file may continue.
  virtual void remove(std::uint64_t id) = 0;

  /// True if remove() has been called for the file behind `fd`, by anybody.
  virtual bool is_removed(int fd) const = 0;

  /// Held while a lease of the limit changes: see lock_folder().
  virtual std::optional<OwnedFd> lock_leases() { return OwnedFd(); }

  /// The caller now holds the lock of another writer's segment, through `fd`.
  virtual void taken_over(std::uint64_t /*id*/, int /*fd*/) {}

  /// "the folder /nvme/leat", for messages.
  virtual std::string where() const = 0;
};

/// The Error for a system call that returned `negated_errno` while `doing`.
Error file_error(int negated_errno, std::string doing);

/// Files of a folder, which is created if necessary: `segment-ID.leat`, and
/// `segment-ID.new` while it is being made. `ops` must outlive it.
///
/// Errors: as SegmentFiles::create()
Result<std::unique_ptr<SegmentFiles>> open_segment_folder(std::string path,
                                                          FileOps& ops);

/// The segments in a folder; empty if there is no folder.
std::vector<std::string> segment_paths(const std::string& folder);

/// The room that a file takes on disk, without holes; 0 if there is none.
std::uint64_t allocated_bytes_of(const std::string& path);

/// Anonymous memory (memfd_create) of this process alone, which ends with it.
/// `ops` outlives it.
std::unique_ptr<SegmentFiles> open_segment_memory(FileOps& ops);

}  // namespace leat
