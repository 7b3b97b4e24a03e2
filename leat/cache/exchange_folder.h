// The folder by which processes find each other's sockets.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/cache/file_ops.h"

namespace leat {

/// The suffix of sockets that are, or were, listened on.
inline constexpr std::string_view kSocketSuffix = ".sock";

/// Nullopt if the path is longer than the name of a socket can be.
std::optional<sockaddr_un> socket_address(const std::string& path);
inline const sockaddr* as_sockaddr(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// A new socket in `folder`, listened on; `path` is where it is. The folder is
/// made if it is not there, for this user alone.
///
/// Errors:
///   kPermissionDenied  others could write there
///   kUnavailable       no socket can be made there; the message says why
Result<OwnedFd> listen_in(const std::string& folder, std::string& path);

/// Removes the leavings of killed processes in the folders of `base` whose
/// names begin with `prefix`, of this user alone: sockets that nobody listens
/// on, the files by which jobs tell each other, and folders that are then
/// empty. The files of live processes stay.
void sweep_exchange_folders(const std::string& base, std::string_view prefix,
                            FileOps& ops);

}  // namespace leat
