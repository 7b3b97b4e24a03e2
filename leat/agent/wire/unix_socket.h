// The unix sockets of the agent and of the loaders that look for it.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/owned_fd.h"
#include "leat/base/result.h"

namespace leat {

/// The process at the other end, according to the kernel.
struct Peer {
  pid_t pid = 0;
  uid_t user = 0;
  gid_t group = 0;
};
Result<Peer> peer_of(int socket);
/// Uses the same groups as /proc: the first and all others.
bool is_in_group(int socket, const Peer& peer, gid_t group);

/// The socket where loaders of every user look.
inline constexpr const char* kSocketOfAll = "/run/leat/agent.sock";

/// The paths at which a loader looks for an agent, in order: LEAT_AGENT alone
/// if it is set ("off": nowhere); otherwise $XDG_RUNTIME_DIR/leat/agent.sock,
/// /run/leat/agent.sock and /tmp/leat-UID/agent.sock.
std::vector<std::string> agent_paths(const Env& env);

/// A listening socket that nobody else uses, which replaces a dead one at
/// `path`. Meanwhile a file beside it, `path`.lock, is locked.
struct ListeningSocket {
  OwnedFd lock;
  OwnedFd socket;
  // The numbers of the file at `path`.
  dev_t device = 0;
  ino_t inode = 0;
};
/// Mode 0600, or 0660 of `group`. Makes the folder, private or for the group to
/// enter, if it is missing.
///
/// Errors:
///   kInvalidArgument   `path` is too long, or is a file that is not a socket
///   kUnavailable       another agent has it
///   kPermissionDenied  the folder is not ours to make or to write, or not for
///                      the group to enter
///   kNotFound          what the folder would lie in is missing
Result<ListeningSocket> listen_at(const std::string& path,
                                  std::optional<gid_t> group);

/// Removes the file of `mine` at `path`, but not that of a successor, which has
/// its place if somebody removed ours. REQUIRES: mine.socket is open, so that
/// no other file has its number.
void remove_socket(const ListeningSocket& mine, const std::string& path);

/// Does not block.
///
/// Errors:
///   kUnavailable       nobody listens there
///   kPermissionDenied  an agent of another user that is not root
Result<OwnedFd> connect_to(const std::string& path);

}  // namespace leat
