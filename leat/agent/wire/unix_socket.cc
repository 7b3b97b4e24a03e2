#include "leat/agent/wire/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr int kWaiting = 64;  // Connections that are not yet accepted.

Error failed(ErrorCode code, const std::string& path, const std::string& what) {
  return {code, fmt::format("the agent's socket {}: {}", path, what)};
}

Error failed_errno(const std::string& path, const char* what) {
  const int error = errno;
  const ErrorCode code = error == EACCES || error == EPERM || error == EROFS
                             ? ErrorCode::kPermissionDenied
                             : ErrorCode::kUnavailable;
  return failed(code, path, fmt::format("{}: {}", what, strerror(error)));
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return failed(ErrorCode::kInvalidArgument, path,
                  fmt::format("must be a path of at most {} bytes",
                              sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// The folder must be ours, and not writable by others: anyone who could write
/// there could pose as the agent. If we make the folder, `group` may enter it.
Result<void> prepare_folder(const std::string& path,
                            std::optional<gid_t> group) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) return {};
  if (::mkdir(folder.c_str(), 0700) == 0) {
    if (group &&
        (::chown(folder.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
         ::chmod(folder.c_str(), 0750) != 0)) {
      return failed_errno(path, "its folder cannot be given to the group");
    }
  } else if (errno == ENOENT) {
    return failed(ErrorCode::kNotFound, path,
                  "what its folder would lie in is missing; give --socket");
  } else if (errno != EEXIST) {
    return failed_errno(path, "its folder cannot be made; give --socket");
  }
  struct stat is {};
  if (::stat(folder.c_str(), &is) != 0) {
    return failed_errno(path, "its folder cannot be read");
  }
  if (is.st_uid != ::geteuid() && is.st_uid != 0) {
    return failed(ErrorCode::kPermissionDenied, path,
                  "its folder belongs to somebody else; give another --socket");
  }
  if ((is.st_mode & S_IWOTH) != 0 && (is.st_mode & S_ISVTX) == 0) {
    return failed(ErrorCode::kPermissionDenied, path,
                  "anybody can write its folder; give another --socket");
  }
  const bool may_enter =
      (is.st_mode & S_IXOTH) != 0 ||
      (group && is.st_gid == *group && (is.st_mode & S_IXGRP) != 0);
  if (group && !may_enter) {
    return failed(ErrorCode::kPermissionDenied, path,
                  "the group cannot enter its folder; `chgrp` and `chmod "
                  "g+x` it, or give another --socket");
  }
  return {};
}

Error another_has(const std::string& path) {
  return failed(ErrorCode::kUnavailable, path,
                "another agent has it; end that one or give another --socket");
}

Result<OwnedFd> lock_beside(const std::string& path) {
  const std::string name = path + ".lock";
  OwnedFd lock(
      ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return failed_errno(path, "its .lock cannot be made");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return another_has(path);
  return lock;
}

/// Removes what a dead agent left. A live one is found by its answer, too: its
/// .lock may be gone, since cleaners of /tmp take old files.
Result<void> remove_dead(const std::string& path, const sockaddr_un& address) {
  struct stat is {};
  if (::lstat(path.c_str(), &is) != 0) return {};
  if (!S_ISSOCK(is.st_mode)) {
    return failed(ErrorCode::kInvalidArgument, path,
                  "is a file that is no socket; give another --socket");
  }
  const OwnedFd socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed_errno(path, "no socket");
  // EAGAIN: as many wait there as can.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) == 0 ||
      errno == EAGAIN) {
    return another_has(path);
  }
  if (::unlink(path.c_str()) != 0) {
    return failed_errno(path, "what is left of an earlier agent stays");
  }
  return {};
}

}  // namespace

Result<Peer> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return unavailable("who connected is not known");
  }
  return Peer{.pid = peer.pid, .user = peer.uid, .group = peer.gid};
}

bool is_in_group(int socket, const Peer& peer, gid_t group) {
  if (peer.group == group) return true;
  std::vector<gid_t> groups(1024);
  auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) !=
      0) {
    return false;
  }
  groups.resize(size / sizeof(gid_t));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::vector<std::string> agent_paths(const Env& env) {
  if (const auto given = value_of(env, "LEAT_AGENT")) {
    if (*given == "off") return {};
    return {*given};
  }
  std::vector<std::string> paths;
  if (const auto folder = value_of(env, "XDG_RUNTIME_DIR")) {
    paths.push_back(*folder + "/leat/agent.sock");
  }
  paths.emplace_back(kSocketOfAll);
  paths.push_back(fmt::format("/tmp/leat-{}/agent.sock", ::geteuid()));
  return paths;
}

Result<ListeningSocket> listen_at(const std::string& path,
                                  std::optional<gid_t> group) {
  LEAT_TRY(const sockaddr_un address, address_of(path));
  LEAT_TRY_VOID(prepare_folder(path, group));
  ListeningSocket made;
  LEAT_TRY(made.lock, lock_beside(path));
  LEAT_TRY_VOID(remove_dead(path, address));
  made.socket =
      OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.socket) return failed_errno(path, "no socket");
  // Before bind(), so that there is no moment at which others may connect.
  if (::fchmod(made.socket.get(), 0600) != 0 ||
      ::bind(made.socket.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0) {
    return failed_errno(path, "cannot be made");
  }
  struct stat is {};
  if (::lstat(path.c_str(), &is) != 0) {
    return failed_errno(path, "cannot be found");
  }
  made.device = is.st_dev;
  made.inode = is.st_ino;
  if (group && (::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
                ::chmod(path.c_str(), 0660) != 0)) {
    return failed_errno(path, "cannot be given to the group");
  }
  if (::listen(made.socket.get(), kWaiting) != 0) {
    return failed_errno(path, "cannot be listened at");
  }
  return made;
}

void remove_socket(const ListeningSocket& mine, const std::string& path) {
  struct stat is {};
  if (::lstat(path.c_str(), &is) != 0 || is.st_dev != mine.device ||
      is.st_ino != mine.inode) {
    return;
  }
  (void)::unlink(path.c_str());
}

Result<OwnedFd> connect_to(const std::string& path) {
  LEAT_TRY(const sockaddr_un address, address_of(path));
  OwnedFd socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed_errno(path, "no socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
    return failed_errno(path, "cannot be connected to");
  }
  LEAT_TRY(const Peer peer, peer_of(socket.get()));
  if (peer.user != ::geteuid() && peer.user != 0) {
    return failed(ErrorCode::kPermissionDenied, path,
                  "is of an agent of another user");
  }
  return socket;
}

}  // namespace leat
