// The folder in which our memcached process reports its port and errors.
#pragma once
#include <string>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"

namespace leat {

/// The folder of one server, locked (`flock`) as long as its owner lives,
/// however it ends.
struct ServerFolder {
  std::string path;
  OwnedFd lock;

  /// Creates one in `base`, for this user alone. Errors: those of the system
  static Result<ServerFolder> make(const std::string& base);
  /// Removes the folders in `base` whose owners were killed, if they belong to
  /// this user and hold only files that a server writes.
  static void sweep(const std::string& base);
  /// Removes the folder and the server's files in it.
  static void remove(const std::string& path);
};

}  // namespace leat
