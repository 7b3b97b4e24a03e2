// Open file description locks (fcntl(2), F_OFD_SETLK): flock's cover the whole
// file, and POSIX locks are released when anything in the process closes it.
//
// One byte, past all that keys can name, is read-locked by every process that
// has the file open: a process that can lock it for writing is the last.

#include "leat/cache/record_claims.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "leat/base/errors.h"
#include "leat/cache/segment_files.h"

namespace leat {
namespace {

constexpr off_t kInUse = off_t{1} << 62;
/// Another process may remove the file between two of these.
constexpr int kMostTries = 100;

/// 0, or the errno of the failure.
int set_lock(int fd, short kind, off_t at) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = 1;
  while (::fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool is_taken(int error) { return error == EAGAIN || error == EACCES; }

off_t byte_of(const RecordKey& key) { return static_cast<off_t>(key.low >> 2); }

}  // namespace

Result<std::unique_ptr<RecordClaims>> RecordClaims::open(
    const std::string& folder) {
  std::string path = folder + "/" + std::string(kFile);
  for (int i = 0; i < kMostTries; ++i) {
    OwnedFd file(::open(path.c_str(),
                        O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                        0600));
    if (!file) return file_error(-errno, "opening " + path);
    const int error = set_lock(file.get(), F_RDLCK, kInUse);
    if (is_taken(error)) continue;  // It is about to be removed.
    if (error != 0) return file_error(-error, "locking a byte of " + path);
    struct stat now {};
    if (::fstat(file.get(), &now) != 0 || now.st_nlink == 0) continue;
    return std::unique_ptr<RecordClaims>(
        new RecordClaims(std::move(path), std::move(file)));
  }
  return unavailable(path + " comes and goes; is somebody removing it?");
}

// Unlocks first: if several leave at once, each would otherwise block the
// other, and none would be the last.
RecordClaims::~RecordClaims() {
  (void)set_lock(file_.get(), F_UNLCK, kInUse);
  if (set_lock(file_.get(), F_WRLCK, kInUse) != 0) return;
  struct stat ours {};
  struct stat there {};
  if (::fstat(file_.get(), &ours) == 0 && ::stat(path_.c_str(), &there) == 0 &&
      ours.st_ino == there.st_ino) {
    ::unlink(path_.c_str());
  }
}

bool RecordClaims::try_claim(const RecordKey& key) {
  // On a failure, such as too many locks, the record is fetched twice.
  return !is_taken(set_lock(file_.get(), F_WRLCK, byte_of(key)));
}

bool RecordClaims::is_others(const RecordKey& key) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte_of(key);
  lock.l_len = 1;
  return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 &&
         lock.l_type != F_UNLCK;
}

void RecordClaims::release(const RecordKey& key) {
  (void)set_lock(file_.get(), F_UNLCK, byte_of(key));
}

void RecordClaims::announce() {
  const char one = 0;
  (void)!::write(file_.get(), &one, 1);
}

std::uint64_t RecordClaims::announcements() const {
  struct stat now {};
  if (::fstat(file_.get(), &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.st_size);
}

}  // namespace leat
