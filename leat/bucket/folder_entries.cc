#include "leat/bucket/folder_entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "leat/base/system_error.h"
#include "leat/bucket/open_folder.h"

namespace leat {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// The clock of a file system moves in steps; a folder that changed this
/// recently may change again without a new time, so it is not kept.
constexpr std::int64_t kSettledNs = kSecond / 10;

enum class Kind { kFile, kFolder, kOther };

Kind kind_of(DIR* folder, const dirent& entry) {
  if (entry.d_type == DT_REG) return Kind::kFile;
  if (entry.d_type == DT_DIR) return Kind::kFolder;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return Kind::kOther;
  struct stat status;
  if (::fstatat(::dirfd(folder), entry.d_name, &status, 0) != 0) {
    return Kind::kOther;
  }
  if (S_ISREG(status.st_mode)) return Kind::kFile;
  return S_ISDIR(status.st_mode) ? Kind::kFolder : Kind::kOther;
}

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<FolderEntries> FolderEntries::read(const std::string& path,
                                          const MayFollow& may_follow) {
  const OpenFolder folder(::opendir(path.c_str()));
  if (!folder) return system_error(errno, "reading a folder");
  FolderEntries entries;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) {
      return system_error(errno, "reading a folder");
    }
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const Kind kind = kind_of(folder.get(), *entry);
    if (kind == Kind::kOther) continue;
    if (entry->d_type != DT_REG && entry->d_type != DT_DIR) {
      LEAT_TRY(const bool may, may_follow(path + '/' + entry->d_name));
      if (!may) continue;
    }
    const std::size_t begin = entries.names_.size();
    entries.names_ += name;
    if (kind == Kind::kFolder) entries.names_ += '/';
    entries.places_.push_back(
        {begin, static_cast<std::uint32_t>(entries.names_.size() - begin)});
  }
  const std::string_view names = entries.names_;
  std::sort(entries.places_.begin(), entries.places_.end(),
            [names](const Place& a, const Place& b) {
              return names.substr(a.begin, a.size) <
                     names.substr(b.begin, b.size);
            });
  return entries;
}

FolderEntries FolderEntries::of(const Repeat& repeat) {
  FolderEntries entries;
  const std::size_t size = repeat.name(0).size();
  entries.names_.reserve(size * repeat.count());
  entries.places_.reserve(repeat.count());
  for (std::uint64_t i = 0; i < repeat.count(); ++i) {
    entries.places_.push_back(
        {entries.names_.size(), static_cast<std::uint32_t>(size)});
    entries.names_ += repeat.name(i);
  }
  return entries;
}

FolderCache::FolderCache(std::size_t most_names,
                         const std::optional<Repeat>& repeat,
                         MayFollow may_follow)
    : most_names_(most_names), may_follow_(std::move(may_follow)) {
  if (!repeat) return;
  repeated_path_ = repeat->folder();
  repeated_ = std::make_shared<const FolderEntries>(FolderEntries::of(*repeat));
}

std::size_t FolderEntries::lower_bound(std::string_view name) const {
  const std::string_view names = names_;
  const auto found =
      std::lower_bound(places_.begin(), places_.end(), name,
                       [names](const Place& place, std::string_view wanted) {
                         return names.substr(place.begin, place.size) < wanted;
                       });
  return static_cast<std::size_t>(found - places_.begin());
}

Result<std::shared_ptr<const FolderEntries>> FolderCache::find(
    const std::string& path) {
  if (repeated_ != nullptr && path == repeated_path_) return repeated_;
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    return system_error(errno, "reading a folder");
  }
  const std::int64_t changed_ns =
      status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec;
  {
    MutexLock lock(mutex_);
    const auto found = of_path_.find(path);
    if (found != of_path_.end() && found->second->changed_ns == changed_ns &&
        found->second->file == status.st_ino) {
      by_age_.splice(by_age_.begin(), by_age_, found->second);
      return found->second->names;
    }
  }
  const std::int64_t now_ns = wall_clock_ns();
  LEAT_TRY(FolderEntries read, FolderEntries::read(path, may_follow_));
  auto names = std::make_shared<const FolderEntries>(std::move(read));
  if (now_ns - changed_ns > kSettledNs) {
    keep({path, changed_ns, status.st_ino, names});
  }
  return names;
}

void FolderCache::keep(Entry entry) {
  const auto cost = [](const Entry& kept) { return kept.names->size() + 16; };
  Entries dropped;  // Freed outside the lock.
  MutexLock lock(mutex_);
  const auto drop = [&](Entries::iterator place)
                        LEAT_NO_THREAD_SAFETY_ANALYSIS {
                          names_ -= cost(*place);
                          of_path_.erase(place->path);
                          dropped.splice(dropped.begin(), by_age_, place);
                        };
  if (const auto old = of_path_.find(entry.path); old != of_path_.end()) {
    drop(old->second);
  }
  names_ += cost(entry);
  by_age_.push_front(std::move(entry));
  of_path_.emplace(by_age_.front().path, by_age_.begin());
  // The newest stays, however large: a listing comes back for its next page.
  while (names_ > most_names_ && by_age_.size() > 1) {
    drop(std::prev(by_age_.end()));
  }
}

}  // namespace leat
