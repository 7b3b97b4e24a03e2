// The keys below a folder, in byte order.
#pragma once
#include <dirent.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/file/rooted_folder.h"

namespace leat {

/// Names of files that are being written begin with this; they are not
/// objects.
inline constexpr std::string_view kTemporaryPrefix = ".leat-write-";

/// Walks the tree below a folder and yields files as S3 would list them.
///
/// Within a folder, a subfolder sorts by its name and a slash: "a-b" comes
/// before "a/c", which comes before "a0". One folder for each level is held
/// in memory. The walk skips links that lead nowhere, and entries that are
/// neither files nor folders. A link that leads out of the root is an
/// error.
///
/// Threads: one at a time.
class FolderWalk {
 public:
  /// `root` must outlive it. Only keys with `prefix` are yielded.
  FolderWalk(const RootedFolder& root, std::string prefix)
      : root_(root), prefix_(std::move(prefix)) {}

  /// The first file not yet yielded whose key is not before `from`; after the
  /// last, one with an empty key. `from` must not decrease.
  Result<ObjectInfo> next(const std::string& from, const std::stop_token& stop);
  /// Makes next() yield `object` once more.
  void put_back(ObjectInfo object) { put_back_ = std::move(object); }

 private:
  struct Entry {
    std::string name;  ///< The folder's name, with a trailing slash.
    bool is_link = false;
  };
  struct CloseFolder {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  struct Level {
    /// The folder's key, with a trailing slash; "" is the root.
    std::string key;
    std::unique_ptr<DIR, CloseFolder> folder;
    dev_t device = 0;
    ino_t inode = 0;
    std::vector<Entry> entries{};
    std::size_t next = 0;
  };

  Result<void> begin();
  Result<void> enter(std::string key);
  Result<Level> open_level(std::string key) const;
  Result<void> read_entries(Level& level) const;
  /// The entry to list for `name` in a folder; nullopt if it is
  /// skipped.
  Result<std::optional<Entry>> entry_for(const Level& level,
                                         const dirent& found) const;
  Result<std::optional<ObjectInfo>> file_for(const Level& level,
                                             const Entry& entry,
                                             std::string_view key) const;
  bool is_wanted(std::string_view key) const;

  const RootedFolder& root_;
  const std::string prefix_;
  bool has_begun_ = false;
  ObjectInfo put_back_;
  std::vector<Level> levels_;  // From the top down.
};

}  // namespace leat
