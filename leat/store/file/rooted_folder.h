// Opens files below a folder, and nowhere else.
#pragma once
#include <sys/stat.h>

#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// The error for a failed system call on `path`, by errno.
Error error_of_errno(int number, std::string_view path);

/// True if `key` names something below the root: no part of it is empty, "." or
/// "..", and it has no NUL.
bool is_key_of_a_file(std::string_view key);

/// Size, and an ETag of size and time of modification.
ObjectInfo info_of(std::string_view key, const struct stat& status);

/// A folder and everything below it, except where symbolic links lead outside.
///
/// Threads: any.
class RootedFolder {
 public:
  /// Errors: as open_file_store.
  static Result<RootedFolder> open(const std::string& path);

  /// Opens the file or folder at `key`; the root itself if `key` is empty.
  /// `flags` as openat's.
  /// Errors:
  ///   kNotFound, kPermissionDenied, kResourceExhausted, kUnavailable
  ///   kInvalidArgument  not a key of a file, or a link leads out of the root
  Result<OwnedFd> open_at(std::string_view key, int flags) const;
  /// The same, for a regular file, whose status goes to `status`.
  Result<OwnedFd> open_file(std::string_view key, struct stat& status) const;
  /// Opens the folder at `key`, creating missing folders on the way.
  Result<OwnedFd> make_folder(std::string_view key) const;

  /// For messages: the root as it was given, and the key.
  std::string path_of(std::string_view key) const;

 private:
  RootedFolder(std::string path, std::string real_path, OwnedFd root)
      : path_(std::move(path)),
        real_path_(std::move(real_path)),
        root_(std::move(root)) {}
  /// Links may lead anywhere: refuses files that are not below the root.
  Result<void> check_is_inside(int fd, std::string_view key) const;

  std::string path_;
  std::string real_path_;  // Without links; no slash at the end, "" for "/".
  OwnedFd root_;
};

}  // namespace leat
