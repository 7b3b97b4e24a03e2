// Objects that are open, so that a GET costs a stat and not an open.
#pragma once
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "leat/base/mutex.h"
#include "leat/bucket/folder.h"

namespace leat {

/// An open object and what every reply about it says.
struct CachedObject {
  OpenObject object;
  /// ETag, Last-Modified, Accept-Ranges, Content-Type and what else was put.
  std::string headers;
  /// Its CRC64NVME in base64, once a reply has been asked for it.
  mutable std::once_flag is_summed{};
  mutable std::string sum{};
};

/// Keeps the objects opened last. Every answer is checked against the file's
/// identity, size and times, so a changed file is seen at once. A file that
/// others removed stays open until it is asked for again.
///
/// Threads: any.
class ObjectCache {
 public:
  explicit ObjectCache(std::size_t most_open) : most_open_(most_open) {}

  /// Errors: as open_object().
  Result<std::shared_ptr<const CachedObject>> find(const std::string& path);
  /// Closes what was at `path`, so that a file that has gone keeps no space.
  void forget(const std::string& path);

 private:
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t file = 0;
    std::int64_t changed_ns = 0;
    std::int64_t modified_ns = 0;
    std::uint64_t size_bytes = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct Entry {
    std::string path;
    Identity identity;
    std::shared_ptr<const CachedObject> object;
  };
  using Entries = std::list<Entry>;

  static bool identify(const std::string& path, Identity& identity);
  void keep(Entry entry);
  void take(Entries::iterator place, Entries& dropped) LEAT_REQUIRES(mutex_);

  const std::size_t most_open_;

  Mutex mutex_;
  Entries by_age_ LEAT_GUARDED_BY(mutex_);  // Front: used most recently.
  std::unordered_map<std::string_view, Entries::iterator> of_path_
      LEAT_GUARDED_BY(mutex_);  // The keys are the entries' own.
};

}  // namespace leat
