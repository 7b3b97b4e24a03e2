// The lock for making the catalogue of a path, held by one process of this
// machine at a time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "leat/base/result.h"

namespace leat {

/// Identifies the file at a path; a replaced file has a new identity.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Nullopt if there is none, or it is empty, as under a lock.
std::optional<FileIdentity> catalogue_identity(const std::string& path);

/// A flock on the catalogue itself, which is empty until it is written.
///
/// The kernel releases the lock when its process dies, so nobody waits for a
/// dead one. A catalogue that is renamed into place leaves the lock on the
/// earlier file.
///
/// Threads: one at a time. Destruction unlocks, and removes the file if it is
/// still empty.
class CatalogueLock {
 public:
  /// Nullopt if another process holds it. Returns immediately.
  ///
  /// Errors: kPermissionDenied, kResourceExhausted, kUnavailable: no file can
  /// be made or locked there.
  static Result<std::optional<CatalogueLock>> try_lock(const std::string& path);

  ~CatalogueLock();
  CatalogueLock(CatalogueLock&& other) noexcept;
  CatalogueLock& operator=(CatalogueLock&&) = delete;

 private:
  CatalogueLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;  ///< -1 once moved from.
};

}  // namespace leat
