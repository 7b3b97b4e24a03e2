// The lock on making the catalogue of a path: one process of this machine holds
// it at a time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "leat/base/result.h"

namespace leat {

/// Which file is at a path; a file that was replaced is another.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// Nullopt if there is none, or it is empty: a place that a lock holds.
std::optional<FileIdentity> catalogue_identity(const std::string& path);

/// flock on the catalogue itself, which is empty until there is one.
///
/// The kernel takes the lock away when its process dies, so nobody waits for
/// the dead. A catalogue that is renamed into place leaves the lock on the file
/// that was there before.
///
/// Threads: one at a time. Destruction unlocks, and removes the file if it is
/// still empty.
class CatalogueLock {
 public:
  /// Nullopt if somebody else holds it. Returns at once.
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
