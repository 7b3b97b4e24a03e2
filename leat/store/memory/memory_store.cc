// Objects in a map. The driver to copy when you write your own, and the one
// that tests above the store layer use.

#include "leat/store/memory/memory_store.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/store/page_builder.h"

namespace leat {
namespace {

class MemoryStore final : public Store {
 public:
  MemoryStore(MemoryObjects&& objects, MemoryStoreOptions options)
      : options_(std::move(options)) {
    for (auto& [key, bytes] : objects) {
      objects_.insert_or_assign(key, stored(std::move(bytes)));
    }
  }

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override {
    if (stop.stop_requested()) return done(cancelled(request.object.key));
    done(copy_range(request));
  }

  Result<ListPage> list(const ListRequest& request,
                        std::stop_token stop) override {
    if (stop.stop_requested()) return cancelled(request.prefix);
    PageBuilder page(request, options_.most_keys_per_page);
    const MutexLock lock(mutex_);
    while (!page.is_past_the_end()) {
      const auto next = objects_.lower_bound(page.from());
      if (next == objects_.end() || !next->first.starts_with(page.prefix())) {
        break;
      }
      const auto verdict = page.offer(next->first);
      if (verdict == PageBuilder::Verdict::kFull) break;
      if (verdict == PageBuilder::Verdict::kTake) page.add(info_of(*next));
    }
    return std::move(page).finish();
  }

  Result<ObjectInfo> write(std::string_view key,
                           std::span<const std::byte> bytes,
                           std::stop_token stop) override {
    if (stop.stop_requested()) return cancelled(key);
    if (key.empty()) {
      return Error(ErrorCode::kInvalidArgument, "an object needs a key");
    }
    Stored object = stored(std::string(as_text(bytes)));
    const MutexLock lock(mutex_);
    return info_of(
        *objects_.insert_or_assign(std::string(key), std::move(object)).first);
  }

  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override {
    if (stop.stop_requested()) return cancelled(key);
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return not_found(key);
    return info_of(*found);
  }

  StoreTraits traits() const override {
    return {.best_read_bytes = 1,
            .can_list = true,
            .can_write = true,
            .has_etags = true};
  }

  std::string url_of(std::string_view key) const override {
    return options_.url + std::string(key);
  }

 private:
  struct Stored {
    std::string bytes;
    std::string etag;
  };
  using Objects = std::map<std::string, Stored, std::less<>>;

  static Stored stored(std::string bytes) {
    std::string etag = '"' + xxh3_128(as_bytes(bytes)).hex() + '"';
    return {.bytes = std::move(bytes), .etag = std::move(etag)};
  }

  static ObjectInfo info_of(const Objects::value_type& object) {
    return {.key = object.first,
            .size_bytes = object.second.bytes.size(),
            .etag = object.second.etag};
  }

  Error cancelled(std::string_view key) const {
    return Error(ErrorCode::kCancelled, url_of(key) + ": cancelled");
  }

  Error not_found(std::string_view key) const {
    return Error(ErrorCode::kNotFound, url_of(key) + ": no such object");
  }

  Result<void> copy_range(const ReadRequest& request) const {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(request.object.key);
    if (found == objects_.end()) return not_found(request.object.key);
    const auto& [bytes, etag] = found->second;
    if (!request.object.etag.empty() && request.object.etag != etag) {
      return Error(
          ErrorCode::kCorrupt,
          fmt::format("{}: the object changed: its ETag is {}, not {}",
                      url_of(request.object.key), etag, request.object.etag));
    }
    if (auto same = check_object_size(request.object, bytes.size()); !same) {
      return std::move(same).error().while_doing(url_of(request.object.key));
    }
    // Written so that a huge offset cannot wrap around.
    if (request.into.empty() || request.offset >= bytes.size() ||
        request.into.size() > bytes.size() - request.offset) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format(
              "{}: a range of {} bytes at {} is not within its {} bytes",
              url_of(request.object.key), request.into.size(), request.offset,
              bytes.size()));
    }
    std::memcpy(request.into.data(), bytes.data() + request.offset,
                request.into.size());
    return {};
  }

  const MemoryStoreOptions options_;
  mutable Mutex mutex_;
  Objects objects_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Store> open_memory_store(MemoryObjects objects,
                                         MemoryStoreOptions options) {
  return std::make_unique<MemoryStore>(std::move(objects), std::move(options));
}

}  // namespace leat
