// The folder in which a memcached of ours reports its port and its errors.
#pragma once
#include <string>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"

namespace leat {

/// A folder of one server, locked (`flock`) for as long as its owner lives,
/// however that ends.
struct ServerFolder {
  std::string path;
  OwnedFd lock;

  /// A new one in `base`, of this user alone. Errors: those of the system
  static Result<ServerFolder> make(const std::string& base);
  /// Removes those in `base` whose owners were killed, if they are this user's
  /// and hold only files that a server writes.
  static void sweep(const std::string& base);
  /// Removes the server's files with it.
  static void remove(const std::string& path);
};

}  // namespace leat
