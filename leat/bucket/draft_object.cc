#include "leat/bucket/draft_object.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"
#include "leat/bucket/open_folder.h"
#include "leat/bucket/random_id.h"

namespace leat {
namespace {

constexpr std::size_t kCopyBytes = 1 << 30;
constexpr int kBeginTries = 8;

enum class Hold { kMine, kOthers, kUnknown };

/// Unknown on a file system without flock.
Hold hold(const OpenFile& file) {
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0) return Hold::kMine;
  return errno == EWOULDBLOCK ? Hold::kOthers : Hold::kUnknown;
}

bool is_linked(const OpenFile& file) {
  struct stat status;
  return ::fstat(file.descriptor(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace

Result<DraftObject> DraftObject::begin(const std::string& folder) {
  for (int tries = 0; tries < kBeginTries; ++tries) {
    std::string path = folder + '/' + random_id();
    OpenFile file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open() && errno == EEXIST) continue;
    if (!file.is_open()) return system_error(errno, "beginning an object");
    DraftObject draft(std::move(file), std::move(path));
    // A server that begins may have found the file before it was held: then it
    // removes it, or has done so.
    if (hold(draft.file()) != Hold::kOthers && is_linked(draft.file())) {
      return draft;
    }
  }
  return unavailable(
      "beginning an object: other servers remove its file again and again; "
      "serve the folder from one");
}

DraftObject::~DraftObject() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<void> DraftObject::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_.descriptor(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error(errno, "writing the object");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> DraftObject::append_file(const OpenFile& from) {
  std::vector<std::byte> piece;
  while (true) {
    ssize_t copied = -1;
    if (piece.empty()) {
      copied = ::copy_file_range(from.descriptor(), nullptr, file_.descriptor(),
                                 nullptr, kCopyBytes, 0);
      if (copied < 0) piece.resize(1 << 20);  // By hand, on older kernels.
    }
    if (!piece.empty()) {
      copied = ::read(from.descriptor(), piece.data(), piece.size());
      if (copied > 0) {
        LEAT_TRY_VOID(write(std::span(piece).first(std::size_t(copied))));
      }
    }
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return system_error(errno, "copying the bytes");
    if (copied == 0) return {};
  }
}

void remove_dead_drafts(const std::string& folder) {
  const OpenFolder drafts(::opendir(folder.c_str()));
  if (!drafts) return;  // There are none, or none of ours.
  while (const dirent* entry = ::readdir(drafts.get())) {
    const OpenFile file(
        ::openat(::dirfd(drafts.get()), entry->d_name,
                 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status;
    if (!file.is_open() || ::fstat(file.descriptor(), &status) != 0 ||
        !S_ISREG(status.st_mode) || hold(file) != Hold::kMine) {
      continue;
    }
    ::unlinkat(::dirfd(drafts.get()), entry->d_name, 0);
  }
}

}  // namespace leat
