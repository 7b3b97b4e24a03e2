// The names in a folder, sorted as keys are, and kept while the folder does not
// change.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/bucket/repeat.h"

namespace leat {

/// Whether what a symbolic link at this path leads to may be shown.
using MayFollow = std::function<Result<bool>(const std::string& path)>;

/// Files and folders of one folder, in byte order of the keys that begin with
/// them: a folder counts as its name with a slash. All else is left out.
class FolderEntries {
 public:
  std::size_t size() const { return places_.size(); }
  /// "name" of a file, "name/" of a folder.
  std::string_view operator[](std::size_t i) const {
    return std::string_view(names_).substr(places_[i].begin, places_[i].size);
  }
  /// The first that is not below `name`; size() if there is none.
  std::size_t lower_bound(std::string_view name) const;

  /// Errors: kNotFound, kPermissionDenied, kResourceExhausted, kUnavailable.
  static Result<FolderEntries> read(const std::string& path,
                                    const MayFollow& may_follow);
  /// The objects that a file stands for.
  static FolderEntries of(const Repeat& repeat);

 private:
  struct Place {
    std::uint64_t begin;
    std::uint32_t size;
  };
  std::string names_;  // One after another: a million cost one allocation.
  std::vector<Place> places_;
};

/// Threads: any.
class FolderCache {
 public:
  explicit FolderCache(
      std::size_t most_names, const std::optional<Repeat>& repeat = {},
      MayFollow may_follow = [](const auto&) { return true; });

  /// Errors: as FolderEntries::read.
  Result<std::shared_ptr<const FolderEntries>> find(const std::string& path);

 private:
  struct Entry {
    std::string path;
    std::int64_t changed_ns;
    std::uint64_t file;
    std::shared_ptr<const FolderEntries> names;
  };
  using Entries = std::list<Entry>;

  void keep(Entry entry);

  const std::size_t most_names_;
  const MayFollow may_follow_;
  std::string repeated_path_;  ///< Empty: nothing is repeated.
  std::shared_ptr<const FolderEntries> repeated_;

  Mutex mutex_;
  Entries by_age_ LEAT_GUARDED_BY(mutex_);  // Front: used most recently.
  std::unordered_map<std::string_view, Entries::iterator> of_path_
      LEAT_GUARDED_BY(mutex_);  // The keys are the entries' own.
  std::size_t names_ LEAT_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat
