// The part of CachedStore that keeps what its callers make.

#include <algorithm>
#include <optional>
#include <utility>

#include "leat/cache/cached_store.h"

namespace leat {
namespace {

/// The record of the bytes that this one was made of.
RecordId bytes_of(RecordId id) {
  id.made_by.reset();
  return id;
}

}  // namespace

std::uint64_t CachedStore::limit_bytes() const {
  std::uint64_t bytes = 0;
  for (const CacheTier& tier : tiers_) {
    bytes += tier.tier->options().limit_bytes;
  }
  return bytes;
}

std::optional<std::uint64_t> CachedStore::record_bytes(
    const RecordId& id) const {
  const RecordKey key = key_of(id);
  {
    const MutexLock lock(mutex_);
    const auto found = unwritten_.find(key);
    if (found != unwritten_.end()) return found->second->size();
  }
  for (const CacheTier& tier : tiers_) {
    if (const auto bytes = tier.tier->length_of(key)) return bytes;
  }
  return std::nullopt;
}

void CachedStore::find(FindRequest request, std::stop_token stop,
                       FindDone done) {
  ask(request.hint.now);
  const std::uint64_t order = request.hint.now;
  lookups_->submit(order, [this, request = std::move(request),
                           stop = std::move(stop), done = std::move(done),
                           began = SteadyClock().now()](std::size_t) {
    std::optional<CacheLevel> level;
    if (!stop.stop_requested()) {
      level = take({.key = key_of(request.id),
                    .hint = request.hint,
                    .bytes = request.into,
                    .has_etag = !request.id.object.etag.empty(),
                    .is_made = request.id.made_by.has_value()},
                   request.into);
    }
    if (request.observer != nullptr) {
      request.observer->cache_looked(began, SteadyClock().now());
    }
    if (level) {
      count_level(*level);
      if (request.id.made_by) {
        if (metrics_ != nullptr) {
          metrics_->add(Metric::kCacheDecodedHits, 1);
        }
        // Nobody reads those any more, so no use would ever end them.
        if (!sharing_with_.keeps_bytes) forget(key_of(bytes_of(request.id)));
      }
    }
    done(level);  // After this the store may be gone.
  });
}

void CachedStore::keep(const RecordId& id, std::span<const std::byte> record,
                       const ReadHint& hint) {
  see(hint.now);
  Use use{.key = key_of(id),
          .hint = hint,
          .bytes = record,
          .has_etag = !id.object.etag.empty(),
          .is_made = id.made_by.has_value()};
  if (id.made_by && !sharing_with_.keeps_bytes) {
    use.instead_of = key_of(bytes_of(id));
  }
  // Nothing waits for memory, so copying now saves the copy to a queue.
  if (is_in_memory_) return write_at_once(use);
  decide_fetched(use);
}

}  // namespace leat
