#include "leat/store/file/rooted_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"

namespace leat {
namespace {

/// openat that fails if the path leaves the folder, by ".." or by a link.
int open_beneath(int folder, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(
      syscall(SYS_openat2, folder, path, &how, sizeof(how)));
}

/// Opens again if a signal came between.
template <class Open>
int retry_if_interrupted(Open open) {
  int result = 0;
  do {
    result = open();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

Error error_of_errno(int number, std::string_view path) {
  const Error error = system_error(number, path);
  std::string_view remedy;
  if (error.code() == ErrorCode::kNotFound) {
    remedy = "; check the path";
  } else if (error.code() == ErrorCode::kPermissionDenied) {
    remedy = "; check who may read and write it";
  } else if (number == EMFILE || number == ENFILE) {
    remedy = "; raise the limit of open files (ulimit -n)";
  }
  return Error(error.code(), fmt::format("{}{}", error.message(), remedy));
}

bool is_key_of_a_file(std::string_view key) {
  if (key.empty() || key.find('\0') != std::string_view::npos) return false;
  for (;;) {
    const std::size_t slash = key.find('/');
    const std::string_view part = key.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    key.remove_prefix(slash + 1);
  }
}

ObjectInfo info_of(std::string_view key, const struct stat& status) {
  return {.key = std::string(key),
          .size_bytes = static_cast<std::uint64_t>(status.st_size),
          .etag = fmt::format("\"{:x}-{:x}{:08x}\"", status.st_size,
                              status.st_mtim.tv_sec, status.st_mtim.tv_nsec),
          .modified_at = std::chrono::sys_seconds(
              std::chrono::seconds(status.st_mtim.tv_sec))};
}

Result<RootedFolder> RootedFolder::open(const std::string& path) {
  OwnedFd root(retry_if_interrupted([&] {
    return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  if (!root) {
    if (errno == ENOTDIR) {
      return invalid(path + ": not a folder; give the folder it is in");
    }
    return error_of_errno(errno, path);
  }
  const std::unique_ptr<char, decltype(&std::free)> real(
      realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return error_of_errno(errno, path);
  std::string real_path = real.get();
  if (real_path == "/") real_path.clear();
  return RootedFolder(path, std::move(real_path), std::move(root));
}

std::string RootedFolder::path_of(std::string_view key) const {
  std::string path = path_;
  if (!path.ends_with('/') && !key.empty()) path += '/';
  return path.append(key);
}

Result<OwnedFd> RootedFolder::open_at(std::string_view key, int flags) const {
  if (!key.empty() && !is_key_of_a_file(key)) {
    return invalid(
        "'{}' is not the key of a file below {}: an empty, '.' or '..' part",
        key, path_);
  }
  const std::string path = key.empty() ? "." : std::string(key);
  flags |= O_CLOEXEC;
  OwnedFd file(retry_if_interrupted(
      [&] { return open_beneath(root_.get(), path.c_str(), flags); }));
  if (file) return file;
  // EXDEV: a link that goes up or is absolute, and may yet stay inside. The
  // others: a kernel before 5.6, or a sandbox that knows no openat2.
  if (errno != EXDEV && errno != ENOSYS && errno != EPERM && errno != EAGAIN) {
    return error_of_errno(errno, path_of(key));
  }
  file = OwnedFd(retry_if_interrupted(
      [&] { return openat(root_.get(), path.c_str(), flags); }));
  if (!file) return error_of_errno(errno, path_of(key));
  LEAT_TRY_VOID(check_is_inside(file.get(), key));
  return file;
}

Result<void> RootedFolder::check_is_inside(int fd, std::string_view key) const {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(),
                                target.data(), target.size());
  if (size < 0) return error_of_errno(errno, path_of(key));
  const std::string_view real(target.data(), static_cast<std::size_t>(size));
  if (real == real_path_ || (real.starts_with(real_path_) &&
                             real.substr(real_path_.size()).starts_with('/'))) {
    return {};
  }
  return invalid(
      "{}: a symbolic link leads out of {}, to {}; copy the data there or read "
      "it where it is",
      path_of(key), path_, real);
}

Result<OwnedFd> RootedFolder::open_file(std::string_view key,
                                        struct stat& status) const {
  if (key.empty()) {
    return invalid(path_ + ": an empty key");
  }
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  LEAT_TRY(OwnedFd file, open_at(key, O_RDONLY | O_NONBLOCK));
  if (fstat(file.get(), &status) != 0) {
    return error_of_errno(errno, path_of(key));
  }
  if (S_ISDIR(status.st_mode)) {
    return not_found(path_of(key) + ": a folder, and no file");
  }
  if (!S_ISREG(status.st_mode)) {
    return invalid(path_of(key) + ": not a regular file");
  }
  return file;
}

Result<OwnedFd> RootedFolder::make_folder(std::string_view key) const {
  LEAT_TRY(OwnedFd folder, open_at("", O_RDONLY | O_DIRECTORY));
  std::size_t begin = 0;
  while (begin < key.size()) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string name(key.substr(begin, end - begin));
    if (mkdirat(folder.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return error_of_errno(errno, path_of(key.substr(0, end)));
    }
    LEAT_TRY(folder, open_at(key.substr(0, end), O_RDONLY | O_DIRECTORY));
    begin = end + 1;
  }
  return folder;
}

}  // namespace leat
