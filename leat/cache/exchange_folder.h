// The folder in which processes find each other's sockets.
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

/// Nullopt if the path is too long for the name of a socket.
std::optional<sockaddr_un> socket_address(const std::string& path);
inline const sockaddr* as_sockaddr(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// Creates a socket in `folder` and listens on it; sets `path` to it. Creates
/// the folder, if necessary, for this user alone.
///
/// Errors:
///   kPermissionDenied  others could write there
///   kUnavailable       no socket can be made there; the message says why
Result<OwnedFd> listen_in(const std::string& folder, std::string& path);

/// Removes what killed processes left in the folders of `base` whose names
/// begin with `prefix`, for this user alone: sockets that nobody listens on,
/// the files that jobs share, and folders that are then empty. The files of
/// live processes stay.
void sweep_exchange_folders(const std::string& base, std::string_view prefix,
                            FileOps& ops);

}  // namespace leat
