// A read is a flight from read() to finish(). Reads of the same range that come
// meanwhile join it, and are answered from its bytes. Those that come after it
// find the bytes in `unwritten_`, until the writer has put them into a tier.

#include "leat/cache/cached_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "leat/base/check.h"
#include "leat/metrics/stalls.h"
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
  bool has_waited = false;          ///< For another process to bring it.
  std::optional<Interval> awaited;  ///< While another process was to.
  bool is_decided = false;          ///< Whether it is kept: see decide_sent().
  std::vector<Joined> joined;       // Guarded by the store's mutex.

  /// The hint of the last of them in the plan. REQUIRES: there is one.
  static const ReadHint& latest_hint(const std::vector<Joined>& joined) {
    const auto now_of = [](const Joined& read) {
      return read.request.hint->now;
    };
    return *std::ranges::max_element(joined, {}, now_of)->request.hint;
  }
};

namespace {

/// Until now.
void tell_looked(const ReadRequest& request, TimePoint from) {
  if (request.observer == nullptr) return;
  request.observer->cache_looked(from, SteadyClock().now());
}

void tell_awaited(const ReadRequest& request, const Interval& awaited) {
  if (request.observer == nullptr) return;
  request.observer->other_job_awaited(awaited.begin, awaited.end);
}

TierPlan plan_of(std::vector<CacheTier>& tiers) {
  std::vector<TierPlan::Tier> planned;
  planned.reserve(tiers.size());
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
      is_in_memory_(std::ranges::all_of(
          tiers_,
          [](const CacheTier& t) { return t.level == CacheLevel::kRam; })),
      plan_(plan_of(tiers_)),
      allowed_(tiers_.size(), kNotTold),
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
  if (!free_after_) free_after_ = now + options_.epoch_time;
}

void CachedStore::ask(AccessTime now) {
  see(now);
  const MutexLock lock(mutex_);
  // Plans go on, but for one that begins again at an earlier epoch.
  const bool is_another_plan = now + options_.epoch_time < asked_;
  asked_ = is_another_plan ? now : std::max(asked_, now);
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
  ask(flight->request.hint->now);
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
  tell_looked(flight->request, flight->began);
  if (!level) return send(flight);
  count_hit(flight->request, *level);
  finish(flight, {});
}

/// Fills `into` from any place that has the record, and tells the policies.
std::optional<CacheLevel> CachedStore::take(const Use& use,
                                            std::span<std::byte> into) {
  // A record that waits to be written counts as the first tier's already.
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

/// The first tier that has it; a record that none has is lost to their
/// policies.
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
  const bool is_others = turns_->is_others(flight->key);
  const TimePoint asked = SteadyClock().now();
  const auto decided = [this, flight, is_others, asked](bool is_there) {
    if (is_others || is_there) {
      flight->awaited = {asked, SteadyClock().now()};
      tell_awaited(flight->request, *flight->awaited);
    }
    if (!is_there) return fetch(flight);
    lookups_->submit(flight->request.hint->now,
                     [this, flight](std::size_t) { look_up(flight); });
  };
  turns_->ask(flight->key, flight->stop, decided);
}

void CachedStore::fetch(const FlightRef& flight) {
  decide_sent(flight);
  ReadRequest request = flight->request;
  inner_->read(
      std::move(request), flight->stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void CachedStore::hear(const FlightRef& flight, Result<void> result) {
  if (result) {
    if (metrics_ != nullptr) metrics_->add(Metric::kCacheMisses, 1);
    if (flight->request.hint->is_offered) {
      const TimePoint came = SteadyClock().now();
      offer(flight);
      tell_looked(flight->request, came);
    }
  }
  if (!result && flight->is_decided) lose(flight->key);
  if (!result || !flight->request.hint->is_offered) end_turn_of(flight->key);
  finish(flight, std::move(result));
}

void CachedStore::offer(const FlightRef& flight) {
  Use use = use_of(*flight);
  {
    const MutexLock lock(mutex_);
    if (!flight->joined.empty()) {
      use.hint = Flight::latest_hint(flight->joined);
    }
  }
  if (flight->is_decided) return keep_decided(use);
  decide_fetched(use);
}

void CachedStore::decide_sent(const FlightRef& flight) {
  if (!options_.decides_when_sent || !flight->request.hint->is_offered) return;
  const Use use = use_of(*flight);
  Write write{.now = use.hint.now};
  {
    const MutexLock lock(deciding_);
    if (plan_.level_of(use.key)) return;  // By another read of it.
    plan_.fetched(planned(use), write.now, write.steps);
  }
  flight->is_decided = true;
  // The records that it pushes out go now; it is written once it has come.
  std::erase_if(write.steps, [](const TierStep& step) {
    return step.what == TierStep::What::kPut;
  });
  queue(std::move(write), use, /*has_room=*/false);
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
  if (result && !joined.empty()) {
    decide_joined(flight, Flight::latest_hint(joined));
  }
  for (Flight::Joined& read : joined) {
    if (flight->awaited) tell_awaited(read.request, *flight->awaited);
    if (!result && result.error().code() == ErrorCode::kCancelled &&
        !read.stop.stop_requested()) {
      // Only who sent it was stopped: this one goes by itself.
      this->read(std::move(read.request), std::move(read.stop),
                 std::move(read.done));
      continue;
    }
    if (result) {
      const TimePoint came = SteadyClock().now();
      std::memcpy(read.request.into.data(), flight->request.into.data(),
                  read.request.into.size());
      tell_looked(read.request, came);
      count_hit(read.request, tiers_.front().level);
    }
    read.done(result);
  }
}

/// A read that joined another one is a use of the record that the other has
/// brought.
void CachedStore::decide_joined(const FlightRef& flight, const ReadHint& hint) {
  std::optional<std::size_t> level;
  {
    const MutexLock lock(deciding_);
    level = plan_.level_of(flight->key);
  }
  if (!level) return;
  Use use = use_of(*flight);
  use.hint = hint;
  decide_used(*level, use);
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

}  // namespace leat
