#include "leat/index/catalogue_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "leat/base/system_error.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

FileIdentity identity_of(const struct stat& info) {
  return {.device = info.st_dev, .inode = info.st_ino};
}

/// True if the file that is open is the one at the path.
bool is_at(int fd, const std::string& path) {
  struct stat opened = {};
  struct stat there = {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         identity_of(opened) == identity_of(there);
}

}  // namespace

std::optional<FileIdentity> catalogue_identity(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || info.st_size == 0) {
    return std::nullopt;
  }
  return identity_of(info);
}

Result<std::optional<CatalogueLock>> CatalogueLock::try_lock(
    const std::string& path) {
  LEAT_TRY_VOID(make_own_folder(std::filesystem::path(path).parent_path()));
  for (;;) {
    const int fd =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return system_error(errno, "opening " + path);
    CatalogueLock lock(path, fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int number = errno;
      lock.fd_ = -1;
      ::close(fd);
      if (number == EINTR) continue;
      if (number == EWOULDBLOCK) return std::optional<CatalogueLock>();
      return system_error(number, "locking " + path);
    }
    // It may have been replaced or removed between open and lock.
    if (is_at(fd, path)) return std::optional(std::move(lock));
  }
}

CatalogueLock::CatalogueLock(CatalogueLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

CatalogueLock::~CatalogueLock() {
  if (fd_ < 0) return;
  struct stat info = {};
  if (::fstat(fd_, &info) == 0 && info.st_size == 0 && is_at(fd_, path_)) {
    ::unlink(path_.c_str());
  }
  ::close(fd_);
}

}  // namespace leat
