// A read is a flight from read() to finish(). Reads of the same range that come
// meanwhile join it, and are answered from its bytes. Those that come after it
// find the bytes in `unwritten_`, until the writer has put them into a tier.
//
// The plan is asked before the bytes are copied: what is refused costs nothing.
// What it pushes out is moved or freed by the writer, just before it writes.

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
  bool has_waited = false;     ///< For another process to bring it.
  std::vector<Joined> joined;  // Guarded by the store's mutex.
};

namespace {

TierPlan plan_of(std::vector<CacheTier>& tiers) {
  std::vector<TierPlan::Tier> planned;
  for (CacheTier& tier : tiers) {
    planned.push_back({.policy = std::move(tier.policy),
                       .is_lasting = tier.is_lasting,
                       .keeps_copies = tier.keeps_copies});
  }
  return TierPlan(std::move(planned));
}

}  // namespace

CachedStore::CachedStore(std::unique_ptr<Store> inner,
                         std::vector<CacheTier> tiers,
                         CachedStoreOptions options, Metrics* metrics,
                         CacheSharing sharing)
    : StoreWrapper(std::move(inner)),
      options_(std::move(options)),
      metrics_(metrics),
      tiers_(std::move(tiers)),
      plan_(plan_of(tiers_)),
      sharing_with_(std::move(sharing)),
      lookups_(std::make_unique<Executor>("leat-cache", options_.threads)),
      turns_(make_turns()),
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
  turns_.reset();  // The writer ends turns.
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
  if (!is_somewhere(flight->key)) return send(flight);
  lookups_->submit(flight->request.hint->now,
                   [this, flight](std::size_t) { look_up(flight); });
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
  decide_used(*level, use);
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
  std::optional<std::size_t> level;
  {
    const MutexLock lock(deciding_);
    level = plan_.level_of(use.key);
  }
  if (level) decide_used(*level, use);
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
    plan_.lost(i, key);
  }
  return std::nullopt;
}

void CachedStore::send(const FlightRef& flight) {
  if (turns_ == nullptr || flight->has_waited) return fetch(flight);
  flight->has_waited = true;
  turns_->ask(flight->key, flight->stop, [this, flight](bool is_there) {
    if (!is_there) return fetch(flight);
    lookups_->submit(flight->request.hint->now,
                     [this, flight](std::size_t) { look_up(flight); });
  });
}

void CachedStore::fetch(const FlightRef& flight) {
  ReadRequest request = flight->request;
  inner_->read(
      std::move(request), flight->stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void CachedStore::hear(const FlightRef& flight, Result<void> result) {
  if (result) {
    if (metrics_ != nullptr) metrics_->add(Metric::kCacheMisses, 1);
    if (flight->request.hint->is_offered) decide_fetched(use_of(*flight));
  }
  if (!result || !flight->request.hint->is_offered) end_turn_of(flight->key);
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

PlannedRecord CachedStore::planned(const Use& use) const {
  return {.key = use.key,
          .next_use = is_wanted_soon(use) ? kAtOnce : own_next_use(use.hint),
          .length_bytes = static_cast<std::uint32_t>(use.bytes.size()),
          .may_last = use.has_etag};
}

/// Takes it, if so.
bool CachedStore::has_room_in_queue(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (queued_bytes_ != 0 && queued_bytes_ + bytes > options_.queue_bytes) {
    if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
    return false;
  }
  queued_bytes_ += bytes;
  return true;
}

void CachedStore::decide_used(std::size_t level, const Use& use) {
  // The first tier's records cannot rise: nothing will be written.
  const bool may_rise = level != 0 && has_room_in_queue(use.bytes.size());
  Write write{.now = use.hint.now, .key = use.key};
  {
    const MutexLock lock(deciding_);
    const bool is_ours =
        !plan_.holds(level, use.key) && tiers_[level].tier->claim(use.key);
    plan_.used(level, planned(use), write.now, may_rise, is_ours, write.steps);
    hold_for_others(use);
  }
  queue(std::move(write), use, may_rise);
}

void CachedStore::decide_fetched(const Use& use) {
  if (!has_room_in_queue(use.bytes.size())) return end_turn_of(use.key);
  Write write{.now = use.hint.now, .key = use.key};
  {
    const MutexLock lock(deciding_);
    plan_.fetched(planned(use), write.now, write.steps);
    if (use.instead_of && plan_.level_of(use.key)) {
      plan_.forget(*use.instead_of, write.steps);
    }
    hold_for_others(use);
  }
  const bool is_kept = !write.steps.empty();
  queue(std::move(write), use, /*has_room=*/true);
  if (!is_kept) end_turn_of(use.key);
}

/// Copies the bytes if they are to be written, and gives the room back if not.
void CachedStore::queue(Write write, const Use& use, bool has_room) {
  const std::uint64_t size = use.bytes.size();
  const bool has_put = std::ranges::any_of(
      write.steps,
      [](const TierStep& step) { return step.what == TierStep::What::kPut; });
  if (has_put) {
    auto copy = std::make_shared<Buffer>(size);
    std::memcpy(copy->data(), use.bytes.data(), size);
    write.bytes = std::move(copy);
  }
  if (!has_room && write.steps.empty()) return;
  const MutexLock lock(mutex_);
  if (has_room && !has_put) queued_bytes_ -= size;
  if (write.steps.empty()) return;
  if (has_put) unwritten_.insert_or_assign(write.key, write.bytes);
  queue_.push_back(std::move(write));
  changed_.notify_all();
}

void CachedStore::forget(const RecordKey& key) {
  Write write{.key = key};
  {
    const MutexLock lock(deciding_);
    plan_.forget(key, write.steps);
  }
  if (write.steps.empty()) return;
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(write));
  changed_.notify_all();
}

void CachedStore::set_share(CacheLevel level,
                            std::optional<std::uint64_t> bytes) {
  const MutexLock one_by_one(sharing_);
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (tiers_[i].level != level) continue;
    const SegmentTierOptions& tier = tiers_[i].tier->options();
    Write write{.shared = i, .share = bytes};
    {
      const MutexLock lock(deciding_);
      plan_.set_capacity(
          i, bytes.value_or(tier.limit_bytes / tier.expected_writers),
          write.steps);
    }
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(write));
    changed_.notify_all();
  }
}

// --- writing -----------------------------------------------------------------

void CachedStore::write_queued(const std::stop_token& stop) {
  TimePoint refreshed = SteadyClock().now();
  TimePoint caught_up = refreshed;
  while (true) {
    std::optional<Write> write;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(
          lock, stop, options_.catch_up_every,
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
    if (stop.stop_requested()) continue;
    if (SteadyClock().now() - refreshed >= options_.refresh_every) {
      see_files(/*has_new_files=*/true);
      see_others();
      refreshed = caught_up = SteadyClock().now();
    } else if (SteadyClock().now() - caught_up >= options_.catch_up_every) {
      see_others();
      caught_up = SteadyClock().now();
    }
  }
}

void CachedStore::do_steps(const Write& write) {
  for (const TierStep& step : write.steps) {
    switch (step.what) {
      case TierStep::What::kPut:
        put(step, write);
        break;
      case TierStep::What::kDrop:
        drop(step.level, step.key);
        break;
      case TierStep::What::kDropCopy:
        tiers_[step.level].tier->drop(step.key);
        break;
      case TierStep::What::kMove:
        move(step, write);
        break;
    }
  }
}

void CachedStore::write_one(Write& write) {
  do_steps(write);
  if (write.shared) tiers_[*write.shared].tier->set_share(write.share);
  end_turn_of(write.key);
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
    if (plan_.holds(level, key)) return;  // Read again meanwhile.
  }
  tiers_[level].tier->drop(key);
}

/// What was pushed down before it was written goes where it was pushed to.
void CachedStore::put(const TierStep& step, const Write& write) {
  std::size_t level = step.level;
  {
    const MutexLock lock(deciding_);
    while (level < tiers_.size() && !plan_.holds(level, write.key)) ++level;
  }
  if (level == tiers_.size()) return;
  insert(level, write.key, write.bytes->span(), write.now);
}

void CachedStore::move(const TierStep& step, const Write& write) {
  bool is_wanted = false;
  {
    const MutexLock lock(deciding_);
    is_wanted = plan_.holds(step.to, step.key);
  }
  if (is_wanted && !tiers_[step.to].tier->holds(step.key)) {
    Buffer body(step.length_bytes);
    if (tiers_[step.level].tier->read(step.key, body.span())) {
      insert(step.to, step.key, body.span(), write.now);
    } else {
      const MutexLock lock(deciding_);
      plan_.lost(step.to, step.key);
    }
  }
  drop(step.level, step.key);
}

void CachedStore::insert(std::size_t level, const RecordKey& key,
                         std::span<const std::byte> bytes, AccessTime now) {
  SegmentTier& tier = *tiers_[level].tier;
  bool may_free_own = false;
  {
    const MutexLock lock(mutex_);
    may_free_own = free_after_ && now >= *free_after_;
  }
  (void)tier.make_room(record_cost(bytes.size()), may_free_own);
  const std::uint64_t files = tier.files_made();
  const bool is_held = tier.insert(key, bytes);
  if (turns_ != nullptr && tier.files_made() != files) turns_->announce();
  if (is_held) return;
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheRefusals, 1);
  const MutexLock lock(deciding_);
  plan_.lost(level, key);
}

void CachedStore::drain() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return queue_.empty() && !is_writing_;
  });
}

}  // namespace leat
