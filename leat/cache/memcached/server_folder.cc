#include "leat/cache/memcached/server_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"

namespace leat {
namespace {

constexpr std::string_view kPrefix = "leat-memcached-";
constexpr int kTries = 100;

OwnedFd open_folder(const std::string& path) {
  return OwnedFd(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool take_lock(const OwnedFd& folder) {
  return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

bool is_linked(const OwnedFd& folder) {
  struct stat now {};
  return ::fstat(folder.get(), &now) == 0 && now.st_nlink != 0;
}

bool is_ours(const OwnedFd& folder) {
  struct stat now {};
  return ::fstat(folder.get(), &now) == 0 && now.st_uid == ::geteuid();
}

}  // namespace

Result<ServerFolder> ServerFolder::make(const std::string& base) {
  for (int i = 0; i < kTries; ++i) {
    std::string path = base + "/" + std::string(kPrefix) + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return system_error(
          errno, "making a folder " + path + " for what memcached says");
    }
    OwnedFd fd = open_folder(path);
    // A sweeping process may have been quicker than this lock. If folders
    // cannot be locked, nobody sweeps them.
    const bool is_swept = fd && !take_lock(fd) && errno == EWOULDBLOCK;
    if (!is_swept && is_linked(fd)) {
      return ServerFolder{.path = std::move(path), .lock = std::move(fd)};
    }
  }
  return unavailable(
      "each folder made in " + base +
      " for what memcached says is removed at once; name another "
      "place in TMPDIR");
}

void ServerFolder::sweep(const std::string& base) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(base, error), end;
       !error && at != end; at.increment(error)) {
    if (!at->path().filename().string().starts_with(kPrefix)) continue;
    const OwnedFd folder = open_folder(at->path().string());
    if (folder && is_ours(folder) && take_lock(folder)) {
      remove(at->path().string());
    }
  }
}

void ServerFolder::remove(const std::string& path) {
  // memcached writes its port to a second file before it renames that one.
  for (const char* file : {"/port", "/port.lck", "/said"}) {
    (void)::unlink((path + file).c_str());
  }
  (void)::rmdir(path.c_str());
}

}  // namespace leat
