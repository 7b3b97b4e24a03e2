// A read is a flight from read() to finish(). Reads of the same range that come
// meanwhile join it, and are answered from its bytes. Those that come after it
// find the bytes in `unwritten_`, until the writer has put them into a tier.
//
// The policy is asked before the bytes are copied: what is refused costs
// nothing. What it pushes out is freed by the writer, just before it writes.

#include "leat/cache/cached_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/base/check.h"
#include "leat/runtime/thread_name.h"

namespace leat {

/// One read of the inner store or of a tier, and all who wait for its bytes.
struct CachedStore::Flight {
  struct Joined {
    ReadRequest request;
    std::stop_token stop;
    ReadDone done;
  };
  RecordKey key;
  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
  TimePoint began;
  std::vector<Joined> joined;  // Guarded by the store's mutex.
};

/// What one tier is to do with a record, or with a share.
struct CachedStore::Offer {
  std::size_t level = 0;
  bool is_kept = false;
  std::vector<RecordKey> drop;
  bool has_share = false;
  std::optional<std::uint64_t> share;
};

struct CachedStore::Write {
  RecordKey key;
  BufferRef bytes;  // Null if there is only something to drop.
  AccessTime now = 0;
  std::vector<Offer> offers;
};

CachedStore::CachedStore(std::unique_ptr<Store> inner,
                         std::vector<CacheTier> tiers,
                         CachedStoreOptions options, Metrics* metrics)
    : StoreWrapper(std::move(inner)),
      options_(std::move(options)),
      metrics_(metrics),
      tiers_(std::move(tiers)),
      lookups_(std::make_unique<Executor>("leat-cache", options_.threads)),
      writer_([this](const std::stop_token& stop) {
        name_this_thread("leat-cache-write");
        write_queued(stop);
      }) {}

CachedStore::~CachedStore() {
  {
    const MutexLock lock(mutex_);
    LEAT_CHECK(flights_.empty());
  }
  lookups_.reset();  // Tasks that are done but have not returned yet.
  writer_.request_stop();
  writer_.join();
}

RecordKey CachedStore::key_of(const ReadRequest& request) const {
  const std::string url = options_.place + inner_->url_of(request.object.key);
  return record_key({.url = url,
                     .etag = request.object.etag,
                     .offset = request.offset,
                     .length_bytes = request.into.size()});
}

// --- reading -----------------------------------------------------------------

void CachedStore::read(ReadRequest request, std::stop_token stop,
                       ReadDone done) {
  if (!request.hint || request.into.empty()) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  auto flight = std::make_shared<Flight>();
  flight->key = key_of(request);
  flight->request = std::move(request);
  flight->stop = std::move(stop);
  flight->done = std::move(done);
  flight->began = SteadyClock().now();
  {
    const MutexLock lock(mutex_);
    const AccessTime now = flight->request.hint->now;
    if (!free_after_) free_after_ = now + options_.samples;
    const auto [found, is_new] = flights_.try_emplace(flight->key, flight);
    if (!is_new) {
      found->second->joined.push_back({std::move(flight->request),
                                       std::move(flight->stop),
                                       std::move(flight->done)});
      return;
    }
  }
  if (!may_be_here(*flight)) return send(flight);
  lookups_->submit(flight->request.hint->now,
                   [this, flight](std::size_t) { look_up(flight); });
}

bool CachedStore::may_be_here(const Flight& flight) const {
  {
    const MutexLock lock(mutex_);
    if (unwritten_.contains(flight.key)) return true;
  }
  return std::ranges::any_of(tiers_, [&](const CacheTier& tier) {
    return tier.tier->may_hold(flight.key);
  });
}

void CachedStore::look_up(const FlightRef& flight) {
  if (flight->stop.stop_requested()) {
    return hear(flight, Error(ErrorCode::kCancelled, "read was cancelled"));
  }
  const bool was_queued = copy_queued(flight);
  const std::optional<std::size_t> level =
      was_queued ? std::nullopt : find(flight);
  if (flight->request.observer != nullptr) {
    flight->request.observer->cache_looked(flight->began, SteadyClock().now());
  }
  if (!was_queued && !level) return send(flight);
  if (level) {
    note_use(*level, *flight);
    offer(*level, *flight);
  }
  // What waits to be written is the first tier's already.
  count_hit(flight->request, tiers_[level.value_or(0)].level);
  finish(flight, {});
}

/// Copies what was fetched and is not yet in a tier.
bool CachedStore::copy_queued(const FlightRef& flight) {
  BufferRef bytes;
  {
    const MutexLock lock(mutex_);
    const auto found = unwritten_.find(flight->key);
    if (found == unwritten_.end()) return false;
    bytes = found->second;
  }
  std::memcpy(flight->request.into.data(), bytes->data(), bytes->size());
  for (std::size_t i = 0; i < tiers_.size(); ++i) note_use(i, *flight);
  return true;
}

/// The first tier that has it; what none has is lost to their policies.
std::optional<std::size_t> CachedStore::find(const FlightRef& flight) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].tier->may_hold(flight->key)) continue;
    if (tiers_[i].tier->read(flight->key, flight->request.into)) return i;
    if (tiers_[i].tier->holds(flight->key)) continue;  // Left, not lost.
    const MutexLock lock(deciding_);
    tiers_[i].policy->lost(flight->key);
  }
  return std::nullopt;
}

void CachedStore::send(const FlightRef& flight) {
  ReadRequest request = flight->request;
  inner_->read(
      std::move(request), flight->stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void CachedStore::hear(const FlightRef& flight, Result<void> result) {
  if (result) {
    if (metrics_ != nullptr) metrics_->add(Metric::kCacheMisses, 1);
    offer(tiers_.size(), *flight);
  }
  finish(flight, std::move(result));
}

void CachedStore::finish(const FlightRef& flight, Result<void> result) {
  answer_joined(flight, result);
  const ReadDone done = std::move(flight->done);
  done(std::move(result));  // After this the store may be gone.
}

// First, for the bytes are the flight's until its own `done`.
void CachedStore::answer_joined(const FlightRef& flight,
                                const Result<void>& result) {
  std::vector<Flight::Joined> joined;
  {
    const MutexLock lock(mutex_);
    flights_.erase(flight->key);
    joined.swap(flight->joined);
  }
  for (Flight::Joined& read : joined) {
    if (!result && result.error().code() == ErrorCode::kCancelled &&
        !read.stop.stop_requested()) {
      // Only who sent it was stopped: this one goes by itself.
      this->read(std::move(read.request), std::move(read.stop),
                 std::move(read.done));
      continue;
    }
    if (result) {
      std::memcpy(read.request.into.data(), flight->request.into.data(),
                  read.request.into.size());
      count_hit(read.request, tiers_.front().level);
    }
    read.done(result);
  }
}

void CachedStore::count_hit(ReadRequest& request, CacheLevel level) {
  if (request.observer != nullptr) {
    request.observer->cache_had(level, request.into.size());
  }
  if (metrics_ == nullptr) return;
  metrics_->add(level == CacheLevel::kDisk ? Metric::kCacheDiskHits
                                           : Metric::kCacheRamHits,
                1);
}

// --- deciding ----------------------------------------------------------------

AccessTime CachedStore::next_use(std::size_t level,
                                 const Flight& flight) const {
  const AccessTime next = flight.request.hint->next_use;
  // A later run may well read it again: last of all, but ever.
  return tiers_[level].is_lasting ? std::min(next, kNever - 1) : next;
}

void CachedStore::note_use(std::size_t level, const Flight& flight) {
  CacheTier& tier = tiers_[level];
  const RecordKey& key = flight.key;
  const AccessTime now = flight.request.hint->now;
  Offer offer{.level = level};
  {
    const MutexLock lock(deciding_);
    if (tier.policy->holds(key)) {
      tier.policy->used(key, now, next_use(level, flight), offer.drop);
    } else if (tier.tier->claim(key)) {  // Left by an earlier run.
      if (!tier.policy->admit(key, record_cost(flight.request.into.size()), now,
                              next_use(level, flight), offer.drop)) {
        offer.drop.push_back(key);
      }
    }
  }
  if (offer.drop.empty()) return;
  Write write{.key = key, .bytes = nullptr, .now = now};
  write.offers.push_back(std::move(offer));
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(write));
  changed_.notify_all();
}

bool CachedStore::fits(std::size_t level, const Flight& flight) const {
  return !tiers_[level].is_lasting || !flight.request.object.etag.empty();
}

/// Offers a record to the first `levels` tiers.
void CachedStore::offer(std::size_t levels, const Flight& flight) {
  if (levels == 0) return;
  const std::uint64_t size = flight.request.into.size();
  const AccessTime now = flight.request.hint->now;
  Write write{.key = flight.key, .bytes = nullptr, .now = now};
  {
    const MutexLock lock(mutex_);
    if (queued_bytes_ != 0 && queued_bytes_ + size > options_.queue_bytes) {
      if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
      return;
    }
    queued_bytes_ += size;
  }
  {
    const MutexLock lock(deciding_);
    for (std::size_t i = 0; i < levels; ++i) {
      if (!fits(i, flight) || tiers_[i].policy->holds(flight.key)) continue;
      Offer offer{.level = i, .is_kept = true};
      if (!tiers_[i].policy->admit(flight.key, record_cost(size), now,
                                   next_use(i, flight), offer.drop)) {
        continue;
      }
      write.offers.push_back(std::move(offer));
    }
  }
  if (!write.offers.empty()) {
    auto copy = std::make_shared<Buffer>(size);
    std::memcpy(copy->data(), flight.request.into.data(), size);
    write.bytes = std::move(copy);
  }
  const MutexLock lock(mutex_);
  if (write.offers.empty()) {
    queued_bytes_ -= size;
    return;
  }
  unwritten_.insert_or_assign(write.key, write.bytes);
  queue_.push_back(std::move(write));
  changed_.notify_all();
}

void CachedStore::set_share(CacheLevel level,
                            std::optional<std::uint64_t> bytes) {
  const MutexLock one_by_one(sharing_);
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i].level != level) continue;
    const SegmentTierOptions& tier = tiers_[i].tier->options();
    Offer offer{.level = i, .has_share = true, .share = bytes};
    {
      const MutexLock lock(deciding_);
      tiers_[i].policy->set_capacity(
          bytes.value_or(tier.limit_bytes / tier.expected_writers), offer.drop);
    }
    Write write{.key = {}, .bytes = nullptr};
    write.offers.push_back(std::move(offer));
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(write));
    changed_.notify_all();
  }
}

// --- writing -----------------------------------------------------------------

void CachedStore::write_queued(const std::stop_token& stop) {
  TimePoint refreshed = SteadyClock().now();
  while (true) {
    std::optional<Write> write;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(
          lock, stop, options_.refresh_every,
          [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); });
      if (!queue_.empty()) {
        write.emplace(std::move(queue_.front()));
        queue_.pop_front();
        is_writing_ = true;
      } else if (stop.stop_requested()) {
        return;
      }
    }
    if (write) write_one(*write);
    if (SteadyClock().now() - refreshed >= options_.refresh_every &&
        !stop.stop_requested()) {
      for (CacheTier& tier : tiers_) tier.tier->refresh();
      refreshed = SteadyClock().now();
    }
  }
}

void CachedStore::write_one(Write& write) {
  for (const Offer& offer : write.offers) {
    for (const RecordKey& key : offer.drop) drop(offer.level, key);
    if (offer.has_share) tiers_[offer.level].tier->set_share(offer.share);
    if (offer.is_kept) put(offer.level, write);
  }
  const MutexLock lock(mutex_);
  is_writing_ = false;
  if (write.bytes != nullptr) {
    queued_bytes_ -= write.bytes->size();
    const auto found = unwritten_.find(write.key);
    if (found != unwritten_.end() && found->second == write.bytes) {
      unwritten_.erase(found);
    }
  }
  changed_.notify_all();
}

void CachedStore::drop(std::size_t level, const RecordKey& key) {
  {
    const MutexLock lock(deciding_);
    if (tiers_[level].policy->holds(key)) return;  // Read again meanwhile.
  }
  tiers_[level].tier->drop(key);
}

void CachedStore::put(std::size_t level, const Write& write) {
  CacheTier& tier = tiers_[level];
  {
    const MutexLock lock(deciding_);
    if (!tier.policy->holds(write.key)) return;  // Pushed out meanwhile.
  }
  bool may_free_own = false;
  {
    const MutexLock lock(mutex_);
    may_free_own = free_after_ && write.now >= *free_after_;
  }
  (void)tier.tier->make_room(record_cost(write.bytes->size()), may_free_own);
  if (tier.tier->insert(write.key, write.bytes->span())) return;
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
  const MutexLock lock(deciding_);
  tier.policy->lost(write.key);
}

void CachedStore::drain() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return queue_.empty() && !is_writing_;
  });
}

}  // namespace leat
