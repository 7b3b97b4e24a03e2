#include "leat/store/file/folder_walk.h"

#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/page_builder.h"

namespace leat {
namespace {

bool is_absent(const Error& error) {
  return error.code() == ErrorCode::kNotFound;
}

}  // namespace

Result<ObjectInfo> FolderWalk::next(const std::string& from,
                                    const std::stop_token& stop) {
  if (!put_back_.key.empty() && put_back_.key >= from) {
    return std::exchange(put_back_, {});
  }
  put_back_ = {};
  if (!std::exchange(has_begun_, true)) LEAT_TRY_VOID(begin());
  while (!levels_.empty()) {
    if (stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "listing was cancelled");
    }
    Level& level = levels_.back();
    if (level.next == level.entries.size()) {
      levels_.pop_back();
      continue;
    }
    const Entry& entry = level.entries[level.next++];
    std::string key = level.key + entry.name;
    if (key.ends_with('/')) {
      const std::string end = after_prefix(key);
      const bool is_passed = !end.empty() && end <= from;
      if (!is_passed) LEAT_TRY_VOID(enter(std::move(key)));
      continue;
    }
    if (key < from) continue;
    LEAT_TRY(auto file, file_for(level, entry, key));
    if (file) return *std::move(file);
  }
  return ObjectInfo{};
}

Result<void> FolderWalk::begin() {
  const std::size_t slash = prefix_.rfind('/');
  if (slash == std::string::npos) return enter("");
  // No file has such a key, so none is listed, as on any store.
  if (!is_key_of_a_file(prefix_.substr(0, slash))) return {};
  return enter(prefix_.substr(0, slash + 1));
}

Result<void> FolderWalk::enter(std::string key) {
  auto level = open_level(std::move(key));
  if (!level) {
    // Gone, or never there: nothing is listed, as on any store.
    if (is_absent(level.error())) return {};
    return std::move(level).error();
  }
  LEAT_TRY_VOID(read_entries(*level));
  std::ranges::sort(level->entries, {}, &Entry::name);
  levels_.push_back(*std::move(level));
  return {};
}

Result<FolderWalk::Level> FolderWalk::open_level(std::string key) const {
  const std::string_view name =
      std::string_view(key).substr(0, key.empty() ? 0 : key.size() - 1);
  LEAT_TRY(OwnedFd opened, root_.open_at(name, O_RDONLY | O_DIRECTORY));
  struct stat status {};
  if (fstat(opened.get(), &status) != 0) {
    return error_of_errno(errno, root_.path_of(name));
  }
  for (const Level& above : levels_) {
    if (above.device == status.st_dev && above.inode == status.st_ino) {
      return invalid("{}: a symbolic link that leads back to {}; remove it",
                     root_.path_of(name), root_.path_of(above.key));
    }
  }
  Level level;
  level.folder.reset(fdopendir(opened.get()));
  if (level.folder == nullptr) {
    return error_of_errno(errno, root_.path_of(name));
  }
  (void)opened.release();  // The DIR owns it now.
  level.key = std::move(key);
  level.device = status.st_dev;
  level.inode = status.st_ino;
  return level;
}

Result<void> FolderWalk::read_entries(Level& level) const {
  for (;;) {
    errno = 0;
    const dirent* found = readdir(level.folder.get());
    if (found == nullptr) {
      if (errno == 0) return {};
      return error_of_errno(errno, root_.path_of(level.key));
    }
    LEAT_TRY(auto entry, entry_for(level, *found));
    if (entry) level.entries.push_back(*std::move(entry));
  }
}

/// True if the folder or file of this key has the prefix, or something below
/// it may.
bool FolderWalk::is_wanted(std::string_view key) const {
  if (!key.ends_with('/')) return key.starts_with(prefix_);
  const std::size_t size = std::min(key.size(), prefix_.size());
  return key.substr(0, size) == std::string_view(prefix_).substr(0, size);
}

Result<std::optional<FolderWalk::Entry>> FolderWalk::entry_for(
    const Level& level, const dirent& found) const {
  const std::string name = found.d_name;
  if (name == "." || name == ".." || name.starts_with(kTemporaryPrefix)) {
    return std::optional<Entry>();
  }
  Entry entry{.name = name};
  struct stat status {};
  bool is_folder = found.d_type == DT_DIR;
  bool is_file = found.d_type == DT_REG;
  if (found.d_type == DT_UNKNOWN &&
      fstatat(dirfd(level.folder.get()), name.c_str(), &status,
              AT_SYMLINK_NOFOLLOW) == 0) {
    is_folder = S_ISDIR(status.st_mode);
    is_file = S_ISREG(status.st_mode);
    entry.is_link = S_ISLNK(status.st_mode);
  }
  entry.is_link = entry.is_link || found.d_type == DT_LNK;
  const std::string key = level.key + name;
  if (entry.is_link && (is_wanted(key) || is_wanted(key + '/'))) {
    auto target = root_.open_at(key, O_PATH);
    if (!target) {
      if (is_absent(target.error())) return std::optional<Entry>();
      return std::move(target).error();
    }
    if (fstat(target->get(), &status) != 0) {
      return error_of_errno(errno, root_.path_of(key));
    }
    is_folder = S_ISDIR(status.st_mode);
    is_file = S_ISREG(status.st_mode);
  }
  if (is_folder) entry.name += '/';
  if ((!is_folder && !is_file) || !is_wanted(level.key + entry.name)) {
    return std::optional<Entry>();
  }
  return std::optional<Entry>(std::move(entry));
}

Result<std::optional<ObjectInfo>> FolderWalk::file_for(
    const Level& level, const Entry& entry, std::string_view key) const {
  struct stat status {};
  if (entry.is_link) {
    auto target = root_.open_at(key, O_PATH);
    if (!target) {
      if (is_absent(target.error())) return std::optional<ObjectInfo>();
      return std::move(target).error();
    }
    if (fstat(target->get(), &status) != 0) {
      return error_of_errno(errno, root_.path_of(key));
    }
  } else if (fstatat(dirfd(level.folder.get()), entry.name.c_str(), &status,
                     AT_SYMLINK_NOFOLLOW) != 0) {
    // It may have gone since its folder was read.
    if (errno == ENOENT) return std::optional<ObjectInfo>();
    return error_of_errno(errno, root_.path_of(key));
  }
  if (!S_ISREG(status.st_mode)) return std::optional<ObjectInfo>();
  return std::optional<ObjectInfo>(info_of(key, status));
}

}  // namespace leat
