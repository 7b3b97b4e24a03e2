#include "leat/bucket/object_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "leat/store/cloud/http_date.h"

namespace leat {
namespace {

constexpr std::int64_t kNsOfSecond = 1'000'000'000;

std::string headers_of(const ObjectState& state) {
  std::string headers = fmt::format(
      "ETag: \"{}\"\r\nLast-Modified: {}\r\nAccept-Ranges: bytes\r\n",
      state.etag, http_date(state.modified_ns / kNsOfSecond));
  if (state.headers.find("Content-Type: ") == std::string::npos) {
    headers += "Content-Type: binary/octet-stream\r\n";
  }
  return headers + state.headers;
}

}  // namespace

bool ObjectCache::identify(const std::string& path, Identity& identity) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return false;
  identity = {.device = status.st_dev,
              .file = status.st_ino,
              .changed_ns =
                  status.st_ctim.tv_sec * kNsOfSecond + status.st_ctim.tv_nsec,
              .modified_ns =
                  status.st_mtim.tv_sec * kNsOfSecond + status.st_mtim.tv_nsec,
              .size_bytes = static_cast<std::uint64_t>(status.st_size)};
  return true;
}

Result<std::shared_ptr<const CachedObject>> ObjectCache::find(
    const std::string& path) {
  Identity identity;
  const bool exists = identify(path, identity);
  Entries dropped;  // Closed outside the lock.
  {
    MutexLock lock(mutex_);
    const auto found = of_path_.find(path);
    if (found != of_path_.end()) {
      if (exists && found->second->identity == identity) {
        by_age_.splice(by_age_.begin(), by_age_, found->second);
        return found->second->object;
      }
      take(found->second, dropped);
    }
  }
  auto opened = std::make_shared<CachedObject>();
  LEAT_TRY(opened->object, open_object(path));
  opened->headers = headers_of(opened->object.state);
  // A file that changed between the two looks at it is not kept.
  if (exists && identity.size_bytes == opened->object.state.size_bytes &&
      identity.modified_ns == opened->object.state.modified_ns) {
    keep({path, identity, opened});
    // Nor is one that went before it was kept: nobody would forget it.
    Identity now;
    if (!identify(path, now) || now != identity) forget(path);
  }
  return std::shared_ptr<const CachedObject>(std::move(opened));
}

void ObjectCache::forget(const std::string& path) {
  Entries dropped;  // Closed outside the lock.
  MutexLock lock(mutex_);
  const auto found = of_path_.find(path);
  if (found != of_path_.end()) take(found->second, dropped);
}

void ObjectCache::keep(Entry entry) {
  Entries dropped;  // Closed outside the lock.
  MutexLock lock(mutex_);
  if (const auto old = of_path_.find(entry.path); old != of_path_.end()) {
    take(old->second, dropped);
  }
  by_age_.push_front(std::move(entry));
  of_path_.emplace(by_age_.front().path, by_age_.begin());
  while (by_age_.size() > most_open_) take(std::prev(by_age_.end()), dropped);
}

void ObjectCache::take(Entries::iterator place, Entries& dropped) {
  of_path_.erase(place->path);
  dropped.splice(dropped.begin(), by_age_, place);
}

}  // namespace leat
