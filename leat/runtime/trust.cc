#include "leat/runtime/trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/base/system_error.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Root can change every file anyway.
bool is_of_others(const struct stat& info) {
  return info.st_uid != ::geteuid() && info.st_uid != 0;
}

bool can_others_write(const struct stat& info) {
  return (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

std::string owner_of(const struct stat& info) {
  return fmt::format("user {} owns {}", info.st_uid,
                     S_ISDIR(info.st_mode) ? "the folder" : "the file");
}

struct Said {
  Mutex mutex;
  std::set<std::string> paths LEAT_GUARDED_BY(mutex);
};

/// Once for each path of this process.
void warn_of(const std::string& path, std::string_view warning) {
  static auto* const said = new Said;
  const MutexLock lock(said->mutex);
  if (said->paths.insert(path).second) log_warning(warning);
}

}  // namespace

std::string distrust_of_folder(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return "";
  const unsigned mode = info.st_mode & 07777;
  if (is_of_others(info)) {
    return fmt::format(
        "{}: {}, with mode {:04o}, and this process is user {}; name a folder "
        "of your own",
        folder, owner_of(info), mode, ::geteuid());
  }
  if (!can_others_write(info)) return "";
  return fmt::format(
      "{}: others can write the folder, which has mode {:04o} and user {} as "
      "its owner; `chmod go-w` it, or name a folder in it that is not there "
      "yet, which Leat makes for this user alone",
      folder, mode, info.st_uid);
}

bool is_trusted_folder(const std::string& folder, std::string_view use) {
  const std::string why = distrust_of_folder(folder);
  if (why.empty()) return true;
  warn_of(folder, fmt::format("{} is not used: {}", use, why));
  return false;
}

std::string distrust_of_file(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return path + ": cannot be looked at";
  const unsigned mode = info.st_mode & 07777;
  if (is_of_others(info)) {
    return fmt::format("{}: {}, with mode {:04o}; remove it", path,
                       owner_of(info), mode);
  }
  if (!can_others_write(info)) return "";
  return fmt::format(
      "{}: others can write the file, which has mode {:04o}; remove it, or "
      "`chmod go-w` it if you know what it holds",
      path, mode);
}

bool is_trusted_file(int fd, const std::string& path) {
  const std::string why = distrust_of_file(fd, path);
  if (why.empty()) return true;
  warn_of(path, "a file is not used: " + why);
  return false;
}

Result<void> make_own_folder(const std::string& folder) {
  std::filesystem::path path(folder);
  if (path.empty()) return {};
  if (!path.has_filename()) path = path.parent_path();  // "a/b/"
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  const int number = errno;
  if (number == EEXIST && std::filesystem::is_directory(path, error)) return {};
  return system_error(number == EEXIST ? ENOTDIR : number,
                      "making the folder " + path.string());
}

Result<OwnedFd> open_own_file(const std::string& path, int flags) {
  OwnedFd file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return system_error(errno, "opening " + path);
  std::string why = distrust_of_file(file.get(), path);
  if (!why.empty()) {
    return denied(std::move(why));
  }
  return file;
}

}  // namespace leat
