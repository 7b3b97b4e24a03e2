#include "leat/cache/exchange_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <utility>

#include "leat/base/errors.h"
#include "leat/cache/job_board.h"
#include "leat/cache/record_claims.h"
#include "leat/cache/segment_files.h"

namespace leat {
namespace {

/// The suffix of a socket that is not listened on yet.
constexpr std::string_view kNewSuffix = ".new";

Error failed(std::string doing) { return file_error(-errno, std::move(doing)); }

/// True if the folder belongs to this user alone, so that nobody else can have
/// put anything into it.
bool is_private(const std::string& folder) {
  struct stat now {};
  return ::lstat(folder.c_str(), &now) == 0 && S_ISDIR(now.st_mode) &&
         now.st_uid == ::geteuid() && (now.st_mode & 077) == 0;
}

/// Makes the folder, and ensures that nobody else can put anything into it.
Result<void> make_private(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(
      std::filesystem::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed("making the folder " + folder);
  }
  struct stat now {};
  if (::lstat(folder.c_str(), &now) != 0) return failed("looking at " + folder);
  if (!is_private(folder)) {
    return denied(
        "{} is open to others: user {} owns it, with mode {:04o}; remove it",
        folder, now.st_uid, now.st_mode & 07777);
  }
  return {};
}

Result<OwnedFd> listen_once(const std::string& folder, std::string& path) {
  std::random_device draw;
  const std::string name =
      fmt::format("{}/{}-{:08x}", folder, ::getpid(), draw());
  const std::string unheard = name + std::string(kNewSuffix);
  path = name + std::string(kSocketSuffix);
  const auto address = socket_address(unheard);
  if (!address || !socket_address(path)) {
    return unavailable(path + " is too long for the name of a socket");
  }
  OwnedFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener) return failed("making a socket");
  // A process that finds the socket by its final name finds it either listened
  // on or dead.
  if (::bind(listener.get(), as_sockaddr(*address), sizeof *address) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0 ||
      ::rename(unheard.c_str(), path.c_str()) != 0) {
    return failed("listening on " + path);
  }
  return listener;
}

bool is_dead_socket(const std::string& path) {
  const auto address = socket_address(path);
  // Non-blocking: a busy owner is alive.
  const OwnedFd fd(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return address && fd &&
         ::connect(fd.get(), as_sockaddr(*address), sizeof *address) != 0 &&
         errno == ECONNREFUSED;
}

/// Old enough that nobody is about to lock it or listen on it.
bool is_old(const std::string& path) {
  constexpr time_t kLong = 60;
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 &&
         now.st_mtime + kLong < ::time(nullptr);
}

void sweep_folder(const std::string& folder, FileOps& ops) {
  std::error_code error;
  bool has_claims = false;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    bool is_dead = false;
    if (path.ends_with(kSocketSuffix)) is_dead = is_dead_socket(path);
    if (path.ends_with(kNewSuffix)) {
      is_dead = is_old(path) && is_dead_socket(path);
    }
    if (path.ends_with(JobBoard::kSuffix) && is_old(path)) {
      const OwnedFd board(ops.open(path, O_RDONLY | O_NOFOLLOW, 0));
      is_dead = board && try_lock_segment(board.get());
    }
    has_claims = has_claims || at->path().filename() == RecordClaims::kFile;
    if (is_dead) (void)ops.unlink(path);
  }
  // The last process to close the claims removes them.
  if (has_claims) (void)RecordClaims::open(folder);
  (void)::rmdir(folder.c_str());
}

}  // namespace

std::optional<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<OwnedFd> listen_in(const std::string& folder, std::string& path) {
  for (int tries_left = 3;; --tries_left) {
    LEAT_TRY_VOID(make_private(folder));
    Result<OwnedFd> listener = listen_once(folder, path);
    // A sweeping process may have removed the folder while it was empty.
    const bool is_gone =
        !listener && listener.error().code() == ErrorCode::kNotFound;
    if (!is_gone || tries_left == 0) return listener;
  }
}

void sweep_exchange_folders(const std::string& base, std::string_view prefix,
                            FileOps& ops) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(base, error), end;
       !error && at != end; at.increment(error)) {
    const std::string folder = at->path().string();
    const bool is_one = at->path().filename().string().starts_with(prefix);
    if (is_one && is_private(folder)) sweep_folder(folder, ops);
  }
}

}  // namespace leat
