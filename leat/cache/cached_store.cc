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

RecordKey CachedStore::key_of(const RecordId& id) const {
  const std::string url = options_.place + inner_->url_of(id.object.key);
  return record_key({.url = url,
                     .etag = id.object.etag,
                     .offset = id.offset,
                     .length_bytes = id.length_bytes,
                     .made_by = id.made_by});
}

CachedStore::Use CachedStore::use_of(const Flight& flight) {
  return {.key = flight.key,
          .hint = *flight.request.hint,
          .bytes = flight.request.into,
          .has_etag = !flight.request.object.etag.empty()};
}

void CachedStore::see(AccessTime now) {
  const MutexLock lock(mutex_);
  if (!free_after_) free_after_ = now + options_.samples;
}

// --- reading -----------------------------------------------------------------

void CachedStore::read(ReadRequest request, std::stop_token stop,
                       ReadDone done) {
  if (!request.hint || request.into.empty()) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  auto flight = std::make_shared<Flight>();
  flight->key = key_of({.object = request.object,
                        .offset = request.offset,
                        .length_bytes = request.into.size()});
  flight->request = std::move(request);
  flight->stop = std::move(stop);
  flight->done = std::move(done);
  flight->began = SteadyClock().now();
  see(flight->request.hint->now);
  {
    const MutexLock lock(mutex_);
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
  const std::optional<CacheLevel> level =
      take(use_of(*flight), flight->request.into);
  if (flight->request.observer != nullptr) {
    flight->request.observer->cache_looked(flight->began, SteadyClock().now());
  }
  if (!level) return send(flight);
  count_hit(flight->request, *level);
  finish(flight, {});
}

/// Fills `into` from wherever the record is, and tells the policies.
std::optional<CacheLevel> CachedStore::take(const Use& use,
                                            std::span<std::byte> into) {
  // What waits to be written is the first tier's already.
  if (copy_queued(use, into)) return tiers_.front().level;
  const std::optional<std::size_t> level = find_in_tiers(use.key, into);
  if (!level) return std::nullopt;
  note_use(*level, use);
  offer(*level, use);
  return tiers_[*level].level;
}

/// Copies what was fetched and is not yet in a tier.
bool CachedStore::copy_queued(const Use& use, std::span<std::byte> into) {
  BufferRef bytes;
  {
    const MutexLock lock(mutex_);
    const auto found = unwritten_.find(use.key);
    if (found == unwritten_.end() || found->second->size() != into.size()) {
      return false;
    }
    bytes = found->second;
  }
  std::memcpy(into.data(), bytes->data(), bytes->size());
  for (std::size_t i = 0; i < tiers_.size(); ++i) note_use(i, use);
  return true;
}

/// The first tier that has it; what none has is lost to their policies.
std::optional<std::size_t> CachedStore::find_in_tiers(
    const RecordKey& key, std::span<std::byte> into) {
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (!tiers_[i].tier->may_hold(key)) continue;
    if (tiers_[i].tier->read(key, into)) return i;
    if (tiers_[i].tier->holds(key)) continue;  // Left, not lost.
    const MutexLock lock(deciding_);
    tiers_[i].policy->lost(key);
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
    if (flight->request.hint->is_offered) {
      offer(tiers_.size(), use_of(*flight));
    }
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
  count_level(level);
}

void CachedStore::count_level(CacheLevel level) {
  if (metrics_ == nullptr) return;
  metrics_->add(level == CacheLevel::kDisk ? Metric::kCacheDiskHits
                                           : Metric::kCacheRamHits,
                1);
}

// --- deciding ----------------------------------------------------------------

AccessTime CachedStore::next_use(std::size_t level, const Use& use) const {
  const AccessTime next = use.hint.next_use;
  // A later run may well read it again: last of all, but ever.
  return tiers_[level].is_lasting ? std::min(next, kNever - 1) : next;
}

void CachedStore::note_use(std::size_t level, const Use& use) {
  CacheTier& tier = tiers_[level];
  const RecordKey& key = use.key;
  const AccessTime now = use.hint.now;
  Offer offer{.level = level};
  {
    const MutexLock lock(deciding_);
    if (tier.policy->holds(key)) {
      tier.policy->used(key, now, next_use(level, use), offer.drop);
    } else if (tier.tier->claim(key)) {  // Left by an earlier run.
      if (!tier.policy->admit(key, record_cost(use.bytes.size()), now,
                              next_use(level, use), offer.drop)) {
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

bool CachedStore::fits(std::size_t level, const Use& use) const {
  return !tiers_[level].is_lasting || use.has_etag;
}

/// Offers a record to the first `levels` tiers.
void CachedStore::offer(std::size_t levels, const Use& use) {
  if (levels == 0) return;
  const std::uint64_t size = use.bytes.size();
  const AccessTime now = use.hint.now;
  Write write{.key = use.key, .bytes = nullptr, .now = now};
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
      RecordPolicy& policy = *tiers_[i].policy;
      if (!fits(i, use) || policy.holds(use.key)) continue;
      Offer offer{.level = i, .is_kept = true};
      if (!policy.admit(use.key, record_cost(size), now, next_use(i, use),
                        offer.drop)) {
        continue;
      }
      if (use.instead_of && policy.holds(*use.instead_of)) {
        policy.lost(*use.instead_of);
        offer.drop.push_back(*use.instead_of);
      }
      write.offers.push_back(std::move(offer));
    }
  }
  if (!write.offers.empty()) {
    auto copy = std::make_shared<Buffer>(size);
    std::memcpy(copy->data(), use.bytes.data(), size);
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
    for (const RecordKey& key : offer.drop) {
      tiers_[offer.level].tier->drop(key);
    }
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
