// How a segment comes to be: `.new` is made and locked, gets its header, and is
// renamed. So a `.leat` file always has a header, and one whose lock is free
// has no living writer. Between the making and the locking of a `.new` somebody
// may take it for a dead one's and unlink it: the locking or the renaming
// then fails, and is tried again.

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>

#include "leat/cache/segment_files.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

constexpr std::string_view kPrefix = "segment-";
constexpr std::string_view kMade = ".leat";
constexpr std::string_view kNew = ".new";
/// The holder of the lock reads a few headers; but it may be stopped while it
/// does.
constexpr int kLockPatienceMs = 1000;

/// The id in "segment-0123456789abcdef" + `suffix`.
std::optional<std::uint64_t> id_of(std::string_view name,
                                   std::string_view suffix) {
  if (name.size() != kPrefix.size() + 16 + suffix.size() ||
      !name.starts_with(kPrefix) || !name.ends_with(suffix)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kPrefix.size(), 16);
  std::uint64_t id = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return id;
}

class SegmentFolder final : public SegmentFiles {
 public:
  SegmentFolder(std::string path, FileOps& ops)
      : path_(std::move(path)), ops_(ops) {}

  Result<Opened> create(const SegmentHeader& header) override {
    const std::string name = path_of(header.id, kNew);
    for (int tries_left = 3;; --tries_left) {
      Opened made{
          .fd = OwnedFd(ops_.open(name, O_RDWR | O_CREAT | O_EXCL, 0600)),
          .is_writable = true};
      if (!made.fd) return failed(made.fd.get(), "making " + name);
      Result<void> result = fill(made.fd.get(), header, name);
      if (result) return made;
      (void)ops_.unlink(name);
      if (tries_left == 0) return std::move(result).error();
    }
  }

  Result<std::vector<std::uint64_t>> list() override {
    std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path_.c_str()),
                                               &::closedir);
    if (folder == nullptr) return failed(-errno, "listing " + path_);
    std::vector<std::uint64_t> ids;
    while (const dirent* entry = ::readdir(folder.get())) {
      if (const auto made = id_of(entry->d_name, kMade)) ids.push_back(*made);
      if (const auto half = id_of(entry->d_name, kNew)) clean(*half);
    }
    return ids;
  }

  Result<Opened> open(std::uint64_t id) override {
    const std::string name = path_of(id, kMade);
    Opened opened{.fd = OwnedFd(ops_.open(name, O_RDWR | O_NOFOLLOW, 0)),
                  .is_writable = true};
    if (opened.fd.get() == -EACCES || opened.fd.get() == -EROFS) {
      opened = {.fd = OwnedFd(ops_.open(name, O_RDONLY | O_NOFOLLOW, 0))};
    }
    if (!opened.fd) return failed(opened.fd.get(), "opening " + name);
    if (!is_trusted_file(opened.fd.get(), name)) {
      return failed(-EPERM, "opening " + name);
    }
    return opened;
  }

  std::uint64_t allocated_bytes(std::uint64_t id) const override {
    return allocated_bytes_of(path_of(id, kMade));
  }

  void remove(std::uint64_t id) override {
    (void)ops_.unlink(path_of(id, kMade));
  }

  bool is_removed(int fd) const override {
    struct stat now {};
    return ::fstat(fd, &now) == 0 && now.st_nlink == 0;
  }

  std::optional<OwnedFd> lock_leases() override {
    return lock_folder(path_, ops_);
  }

  std::string where() const override { return "the folder " + path_; }

 private:
  std::string path_of(std::uint64_t id, std::string_view suffix) const {
    return fmt::format("{}/{}{:016x}{}", path_, kPrefix, id, suffix);
  }
  static Error failed(int negated_errno, std::string doing) {
    return file_error(negated_errno, std::move(doing));
  }

  Result<void> fill(int fd, const SegmentHeader& header,
                    const std::string& name) {
    if (!try_lock_segment(fd)) return failed(-EAGAIN, "locking " + name);
    if (const int e = write_all(ops_, fd, encode(header), 0); e != 0) {
      return failed(e, "writing " + name);
    }
    if (::rename(name.c_str(), path_of(header.id, kMade).c_str()) != 0) {
      return failed(-errno, "renaming " + name);
    }
    return {};
  }

  void clean(std::uint64_t id) {
    const std::string name = path_of(id, kNew);
    const OwnedFd fd(ops_.open(name, O_RDONLY | O_NOFOLLOW, 0));
    struct stat now {};
    // With the lock ours and the name still its own, nobody will rename it.
    if (fd && try_lock_segment(fd.get()) && ::stat(name.c_str(), &now) == 0) {
      (void)ops_.unlink(name);
    }
  }

  const std::string path_;
  FileOps& ops_;
};

std::vector<std::string> paths_in(const std::string& folder,
                                  std::string_view suffix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    if (id_of(at->path().filename().string(), suffix)) {
      paths.push_back(at->path().string());
    }
  }
  return paths;
}

}  // namespace

std::vector<std::string> segment_paths(const std::string& folder) {
  return paths_in(folder, kMade);
}

std::uint64_t allocated_bytes_of(const std::string& path) {
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.st_blocks) * 512;
}

bool try_lock_segment(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

std::optional<OwnedFd> lock_folder(const std::string& path, FileOps& ops) {
  OwnedFd fd(ops.open(path, O_RDONLY | O_DIRECTORY, 0));
  if (!fd) return std::nullopt;
  for (int waited_ms = 0; !try_lock_segment(fd.get()); ++waited_ms) {
    if (errno != EWOULDBLOCK) return OwnedFd();
    if (waited_ms >= kLockPatienceMs) return std::nullopt;
    (void)::poll(nullptr, 0, 1);
  }
  return fd;
}

std::uint64_t draw_id() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

Error file_error(int negated_errno, std::string doing) {
  const int error = -negated_errno;
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound
                         : error == EACCES || error == EPERM || error == EROFS
                             ? ErrorCode::kPermissionDenied
                         : error == ENOSPC || error == EDQUOT ||
                                 error == EMFILE || error == ENFILE ||
                                 error == ENOMEM
                             ? ErrorCode::kResourceExhausted
                             : ErrorCode::kUnavailable;
  return Error(code, fmt::format("{}: {}", doing, std::strerror(error)));
}

Result<std::unique_ptr<SegmentFiles>> open_segment_folder(std::string path,
                                                          FileOps& ops) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  LEAT_TRY_VOID(make_own_folder(path));
  return std::unique_ptr<SegmentFiles>(
      std::make_unique<SegmentFolder>(std::move(path), ops));
}

}  // namespace leat
