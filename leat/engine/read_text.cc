#include "leat/engine/read_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/owned_fd.h"

namespace leat {
namespace {

/// False if some of the text may be missing.
bool is_all_written(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file.good();
}

/// The same; closes the file.
bool is_all_written(OwnedFd file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return ::close(file.release()) == 0;
}

/// A new file, with the mode of the one that it is to replace. None: its folder
/// takes no other file, or has one of that name, which may be anybody's.
OwnedFd open_draft(const std::string& draft, const std::string& path) {
  OwnedFd file(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  struct stat old = {};
  if (!file || ::lstat(path.c_str(), &old) != 0) return file;
  if (::fchmod(file.get(), old.st_mode & 07777) == 0) return file;
  ::unlink(draft.c_str());
  return OwnedFd();
}

/// Its folder would let a file be replaced that may not be written.
Result<void> check_protection(const std::string& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 ||
      errno != EACCES) {
    return {};
  }
  return denied(
      "{} is protected: let it be written, as by chmod u+w, or name another "
      "file",
      path);
}

/// A link, a pipe or a device has to stay what it is.
bool may_be_replaced(const std::string& path) {
  std::error_code failed;
  const auto kind = std::filesystem::symlink_status(path, failed).type();
  return kind == std::filesystem::file_type::regular ||
         kind == std::filesystem::file_type::not_found;
}

}  // namespace

Result<std::string> read_text(const std::string& path,
                              std::uint64_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return not_found("{} cannot be read: is there such a file?", path);
  }
  std::string text;
  std::string block(1 << 16, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) ||
         file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      return invalid("{} has more than {} bytes", path, most_bytes);
    }
  }
  if (file.bad()) {
    return unavailable("reading {} failed: is it a file?", path);
  }
  return text;
}

Result<void> write_text(const std::string& path, const std::string& text) {
  LEAT_TRY_VOID(check_protection(path));
  const Error unwritten = unavailable(
      "{} cannot be written: is its folder there, and has the disk room?",
      path);
  if (may_be_replaced(path)) {
    const std::string draft = fmt::format("{}.part-{}", path, ::getpid());
    if (OwnedFd file = open_draft(draft, path)) {
      std::error_code failed;
      const bool is_whole = is_all_written(std::move(file), text);
      if (is_whole) std::filesystem::rename(draft, path, failed);
      if (is_whole && !failed) return {};
      std::filesystem::remove(draft, failed);
      if (!is_whole) return unwritten;
    }
  }
  // No other file may lie in its folder, or take its place.
  if (is_all_written(path, text)) return {};
  return unwritten;
}

}  // namespace leat
