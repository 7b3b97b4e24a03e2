// The keys of a bucket in byte order.
//
// A folder of the bucket is a run of keys with a common beginning, and its
// entries (folders with a slash behind) are in the order of those runs. So a
// walk in the order of entries meets the keys in theirs, and a run that lies
// wholly before `after`, or off `prefix`, is jumped over unread.

#include "leat/bucket/key_walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/system_error.h"

namespace leat {
namespace {

enum class Next { kGoOn, kStop };

class Walk {
 public:
  Walk(const KeyQuery& query, FolderCache& folders)
      : query_(query), folders_(folders) {}

  /// All keys that begin with `base`, which is empty or ends with a slash.
  Result<Next> visit(const std::string& path, const std::string& base) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) {
      return skipped(system_error(errno, "looking at a folder"));
    }
    for (const Level& level : above_) {
      if (level.device == status.st_dev && level.inode == status.st_ino) {
        return invalid(
            "{} is a symbolic link that leads back to {}, so its keys have no "
            "end; remove it",
            base.substr(0, base.size() - 1),
            level.base.empty() ? "the bucket" : level.base);
      }
    }
    above_.push_back({status.st_dev, status.st_ino, base});
    auto next = visit_entries(path, base);
    above_.pop_back();
    return next;
  }

  KeyPage take() && { return std::move(page_); }

 private:
  /// A folder that the walk is in.
  struct Level {
    dev_t device;
    ino_t inode;
    std::string base;
  };

  Result<Next> visit_entries(const std::string& path, const std::string& base) {
    const auto entries = folders_.find(path);
    if (!entries) return skipped(entries.error());
    const FolderEntries& names = **entries;
    for (std::size_t i = first_of(names, base); i < names.size(); ++i) {
      const std::string key = base + std::string(names[i]);
      if (is_past_prefix(key)) break;
      LEAT_TRY(const Next next, names[i].ends_with('/')
                                    ? visit_folder(path, key, names[i])
                                    : visit_file(key));
      if (next == Next::kStop) return Next::kStop;
    }
    return Next::kGoOn;
  }

  /// An entry that vanished, or was a file after all, holds no keys.
  static Result<Next> skipped(const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return Next::kGoOn;
    return error;
  }

  /// The first entry that can hold a key of the page.
  std::size_t first_of(const FolderEntries& names,
                       const std::string& base) const {
    return std::max(first_at(names, base, query_.prefix),
                    first_at(names, base, query_.after));
  }

  /// The first entry whose keys are not all below `bound`.
  static std::size_t first_at(const FolderEntries& names, std::string_view base,
                              std::string_view bound) {
    if (!bound.starts_with(base)) return bound < base ? 0 : names.size();
    bound.remove_prefix(base.size());
    const std::size_t slash = bound.find('/');
    if (slash != std::string_view::npos) bound = bound.substr(0, slash + 1);
    return names.lower_bound(bound);
  }

  bool is_past_prefix(std::string_view key) const {
    const std::string_view prefix = query_.prefix;
    return key > prefix && !key.starts_with(prefix) && !prefix.starts_with(key);
  }

  Result<Next> visit_folder(const std::string& path, const std::string& key,
                            std::string_view name) {
    const std::string_view prefix = query_.prefix;
    if (!key.starts_with(prefix) && !prefix.starts_with(key)) {
      return Next::kGoOn;
    }
    if (is_done(group_of(key))) return Next::kGoOn;
    return visit(path + '/' + std::string(name.substr(0, name.size() - 1)),
                 key);
  }

  Next visit_file(const std::string& key) {
    if (!key.starts_with(query_.prefix) || key <= query_.after) {
      return Next::kGoOn;
    }
    const std::string_view group = group_of(key);
    if (group.empty()) return add(key, /*is_prefix=*/false);
    if (is_done(group)) return Next::kGoOn;
    return add(group, /*is_prefix=*/true);
  }

  /// The key up to its first delimiter after the prefix; empty if it has none.
  std::string_view group_of(std::string_view key) const {
    if (query_.delimiter.empty() || key.size() <= query_.prefix.size()) {
      return {};
    }
    const std::size_t at = key.find(query_.delimiter, query_.prefix.size());
    if (at == std::string_view::npos) return {};
    return key.substr(0, at + query_.delimiter.size());
  }

  /// True if the group is on the page already, or was on one before.
  bool is_done(std::string_view group) const {
    if (group.empty()) return false;
    if (query_.after == group) return true;
    return !page_.found.empty() && page_.found.back().is_prefix &&
           page_.found.back().key == group;
  }

  Next add(std::string_view key, bool is_prefix) {
    if (page_.found.size() == query_.most) {
      page_.is_cut = true;
      return Next::kStop;
    }
    page_.found.push_back({std::string(key), is_prefix});
    return Next::kGoOn;
  }

  const KeyQuery& query_;
  FolderCache& folders_;
  KeyPage page_;
  std::vector<Level> above_;
};

}  // namespace

Result<KeyPage> walk_keys(const std::string& bucket_path, const KeyQuery& query,
                          FolderCache& folders) {
  if (query.most == 0) return KeyPage();
  Walk walk(query, folders);
  LEAT_TRY([[maybe_unused]] const Next end, walk.visit(bucket_path, ""));
  return std::move(walk).take();
}

}  // namespace leat
