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

/// Tries to be the one writer of the file behind `fd`: flock on itself, which
/// the kernel takes away when its process ends.
bool try_lock_segment(int fd);

/// An id for a segment or a writer: drawn at random, so that no two are alike.
std::uint64_t draw_id();

/// Locks a folder, for as long as the descriptor is open. Nullopt if another
/// one has the lock for longer than is worth waiting for, or the folder cannot
/// be opened; no descriptor where the file system has no locks.
std::optional<OwnedFd> lock_folder(const std::string& path, FileOps& ops);

/// Tells the segments that others have made, and makes new ones.
///
/// Threads: one at a time.
class SegmentFiles {
 public:
  struct Opened {
    OwnedFd fd;
    bool is_writable = false;
  };

  virtual ~SegmentFiles() = default;

  /// Makes a segment with this header, locked by us.
  ///
  /// Errors:
  ///   kPermissionDenied   nothing can be made there
  ///   kResourceExhausted  no room, or no more files may be open
  ///   kUnavailable        anything else that the system says
  virtual Result<Opened> create(const SegmentHeader& header) = 0;

  /// The ids of all segments that are there now, ours included. Cleans what a
  /// dead process left half made.
  ///
  /// Errors: as create(); kNotFound
  virtual Result<std::vector<std::uint64_t>> list() = 0;

  /// Opens one of another writer. Errors: as list()
  virtual Result<Opened> open(std::uint64_t id) = 0;

  /// The room of one, whether or not it can be opened.
  virtual std::uint64_t allocated_bytes(std::uint64_t /*id*/) const {
    return 0;
  }

  /// REQUIRES: the caller holds its lock. Readers of the file may go on.
  virtual void remove(std::uint64_t id) = 0;

  /// True if remove() has been called for the file behind `fd`, by anybody.
  virtual bool is_removed(int fd) const = 0;

  /// Held to change a lease of the limit: see lock_folder().
  virtual std::optional<OwnedFd> lock_leases() { return OwnedFd(); }

  /// Says that the caller has the lock of another's segment now, by `fd`.
  virtual void taken_over(std::uint64_t /*id*/, int /*fd*/) {}

  /// "the folder /nvme/leat", for messages.
  virtual std::string where() const = 0;
};

/// The Error of a system call that answered `negated_errno`, doing `doing`.
Error file_error(int negated_errno, std::string doing);

/// Files of a folder, which is made if it is not there: `segment-ID.leat`, and
/// `segment-ID.new` while one is being made. `ops` outlives it.
///
/// Errors: as SegmentFiles::create()
Result<std::unique_ptr<SegmentFiles>> open_segment_folder(std::string path,
                                                          FileOps& ops);

/// The segments that are in a folder now; empty where there is none.
std::vector<std::string> segment_paths(const std::string& folder);

/// The room of a file on its disk, holes left out; 0 if there is none.
std::uint64_t allocated_bytes_of(const std::string& path);

/// Anonymous memory (memfd_create) of this process alone, gone with it. `ops`
/// outlives it.
std::unique_ptr<SegmentFiles> open_segment_memory(FileOps& ops);

}  // namespace leat
