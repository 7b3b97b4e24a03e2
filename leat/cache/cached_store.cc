// A read is a flight from read() to finish(). Reads of the same range that come
// in the meantime join it and are answered from its bytes. Later reads find the
// bytes in the queue, until the writer has put them into a tier.

#include "leat/cache/cached_store.h"

#include <cstring>
#include <optional>
#include <utility>

namespace leat {
namespace {

/// Measures until now.
void tell_looked(ReadObserver* observer, TimePoint from) {
  if (observer == nullptr) return;
  observer->cache_looked(from, SteadyClock().now());
}

void tell_awaited(const ReadRequest& request, const Interval& awaited) {
  if (request.observer == nullptr) return;
  request.observer->other_job_awaited(awaited.begin, awaited.end);
}

Metric hits_of(CacheLevel level) {
  return level == CacheLevel::kDisk ? Metric::kCacheDiskHits
                                    : Metric::kCacheRamHits;
}

/// The record of the bytes that this record was made from.
RecordId bytes_of(RecordId id) {
  id.made_by.reset();
  return id;
}

}  // namespace

CachedStore::CachedStore(std::unique_ptr<Store> inner,
                         std::vector<CacheTier> tiers,
                         CachedStoreOptions options, Metrics* metrics,
                         CacheSharing sharing)
    : StoreWrapper(std::move(inner)),
      place_(options.place),
      keeps_bytes_(sharing.keeps_bytes),
      metrics_(metrics),
      kept_(std::move(tiers), options, std::move(sharing), metrics),
      lookups_("leat-cache", options.threads) {}

CacheUse CachedStore::use_of(const ReadFlight& flight) const {
  const ReadRequest& request = flight.read.request;
  return {.key = flight.key,
          .hint = *request.hint,
          .bytes = request.into,
          .has_version = has_version(request.object)};
}

bool CachedStore::has_version(const ObjectId& object) const {
  return !object.etag.empty() || inner_->names_version(object.key);
}

RecordKey CachedStore::key_of(const RecordId& id) const {
  const std::string url = place_ + inner_->name_of(id.object.key);
  return record_key({.url = url,
                     .etag = id.object.etag,
                     .offset = id.offset,
                     .length_bytes = id.length_bytes,
                     .made_by = id.made_by});
}

// --- reads of ranges ---------------------------------------------------------

void CachedStore::read(ReadRequest request, std::stop_token stop,
                       ReadDone done) {
  if (!request.hint || request.into.empty()) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  auto flight = std::make_shared<ReadFlight>();
  flight->key = key_of({.object = request.object,
                        .offset = request.offset,
                        .length_bytes = request.into.size()});
  const AccessTime now = request.hint->now;
  flight->read = {std::move(request), std::move(stop), std::move(done)};
  flight->began = SteadyClock().now();
  kept_.clock().ask(now);
  if (!flights_.begin(flight)) return;
  if (!kept_.lookup().may_have(flight->key)) return send(flight);
  lookups_.submit(now, [this, flight](std::size_t) { look_up(flight); });
}

void CachedStore::look_up(const ReadFlightRef& flight) {
  if (flight->read.stop.stop_requested()) {
    return hear(flight, Error(ErrorCode::kCancelled, "read was cancelled"));
  }
  const ReadRequest& request = flight->read.request;
  const auto level = kept_.take(use_of(*flight), request.into);
  tell_looked(request.observer, flight->began);
  if (!level) return send(flight);
  count_hit(request, *level);
  finish(flight, {});
}

void CachedStore::send(const ReadFlightRef& flight) {
  FetchTurns* const turns = kept_.turns();
  if (turns == nullptr || flight->has_waited) return fetch(flight);
  flight->has_waited = true;
  const bool is_others = turns->is_others(flight->key);
  const TimePoint asked = SteadyClock().now();
  const auto decided = [this, flight, is_others, asked](bool is_there) {
    if (is_others || is_there) {
      flight->awaited = {asked, SteadyClock().now()};
      tell_awaited(flight->read.request, *flight->awaited);
    }
    if (!is_there) return fetch(flight);
    lookups_.submit(flight->read.request.hint->now,
                    [this, flight](std::size_t) { look_up(flight); });
  };
  turns->ask(flight->key, flight->read.stop, decided);
}

void CachedStore::fetch(const ReadFlightRef& flight) {
  if (flight->read.request.hint->is_offered && kept_.sent(use_of(*flight))) {
    flight->is_decided = true;
  }
  ReadRequest request = flight->read.request;
  inner_->read(
      std::move(request), flight->read.stop,
      [this, flight](Result<void> result) { hear(flight, std::move(result)); });
}

void CachedStore::hear(const ReadFlightRef& flight, Result<void> result) {
  const ReadRequest& request = flight->read.request;
  if (result) {
    count(Metric::kCacheMisses);
    if (request.hint->is_offered) {
      const TimePoint came = SteadyClock().now();
      offer(flight);
      tell_looked(request.observer, came);
    }
  }
  if (!result && flight->is_decided) kept_.lose(flight->key);
  if (!result || !request.hint->is_offered) kept_.end_turn(flight->key);
  finish(flight, std::move(result));
}

void CachedStore::offer(const ReadFlightRef& flight) {
  CacheUse use = use_of(*flight);
  if (const auto hint = flights_.latest_joined(*flight)) use.hint = *hint;
  if (flight->is_decided) return kept_.came(use);
  kept_.fetched(use);
}

void CachedStore::finish(const ReadFlightRef& flight, Result<void> result) {
  answer_joined(flight, result);
  const ReadDone done = std::move(flight->read.done);
  done(std::move(result));  // After this call the store may be gone.
}

// Answered first, since the bytes are the flight's only until its own `done`.
void CachedStore::answer_joined(const ReadFlightRef& flight,
                                const Result<void>& result) {
  std::vector<AwaitedRead> joined = flights_.end(*flight);
  std::optional<CacheLevel> level;
  if (result && !joined.empty()) {
    CacheUse use = use_of(*flight);
    use.hint = latest_hint(joined);
    level = kept_.joined(use);
  }
  for (AwaitedRead& read : joined) {
    if (flight->awaited) tell_awaited(read.request, *flight->awaited);
    if (!result && result.error().code() == ErrorCode::kCancelled &&
        !read.stop.stop_requested()) {
      // Only the read that sent it was stopped: this one sends its own.
      this->read(std::move(read.request), std::move(read.stop),
                 std::move(read.done));
      continue;
    }
    if (level) {
      const TimePoint came = SteadyClock().now();
      std::memcpy(read.request.into.data(), flight->read.request.into.data(),
                  read.request.into.size());
      tell_looked(read.request.observer, came);
      count_hit(read.request, *level);
    }
    read.done(result);
  }
}

void CachedStore::count(Metric metric) {
  if (metrics_ != nullptr) metrics_->add(metric, 1);
}

void CachedStore::count_hit(const ReadRequest& request, CacheLevel level) {
  if (request.observer != nullptr) {
    request.observer->cache_had(level, request.into.size());
  }
  count(hits_of(level));
}

// --- records that callers make -----------------------------------------------

std::optional<std::uint64_t> CachedStore::record_bytes(
    const RecordId& id) const {
  return kept_.lookup().length_of(key_of(id));
}

void CachedStore::find(FindRequest request, std::stop_token stop,
                       FindDone done) {
  const AccessTime now = request.hint.now;
  kept_.clock().ask(now);
  lookups_.submit(
      now, [this, request = std::move(request), stop = std::move(stop),
            done = std::move(done), began = SteadyClock().now()](std::size_t) {
        std::optional<CacheLevel> level;
        if (!stop.stop_requested()) level = take_record(request);
        tell_looked(request.observer, began);
        if (level) found_record(request.id, *level);
        done(level);  // After this call the store may be gone.
      });
}

std::optional<CacheLevel> CachedStore::take_record(const FindRequest& request) {
  return kept_.take({.key = key_of(request.id),
                     .hint = request.hint,
                     .bytes = request.into,
                     .has_version = has_version(request.id.object),
                     .is_made = request.id.made_by.has_value()},
                    request.into);
}

void CachedStore::found_record(const RecordId& id, CacheLevel level) {
  count(hits_of(level));
  if (!id.made_by) return;
  count(Metric::kCacheDecodedHits);
  // Nobody reads those any more, so no use would ever remove them.
  if (!keeps_bytes_) kept_.forget(key_of(bytes_of(id)));
}

void CachedStore::keep(const RecordId& id, std::span<const std::byte> record,
                       const ReadHint& hint) {
  kept_.clock().see(hint.now);
  CacheUse use{.key = key_of(id),
               .hint = hint,
               .bytes = record,
               .has_version = has_version(id.object),
               .is_made = id.made_by.has_value()};
  if (id.made_by && !keeps_bytes_) use.instead_of = key_of(bytes_of(id));
  kept_.made(use);
}

// --- turns -------------------------------------------------------------------

void CachedStore::take_turn(const RecordId& id, std::stop_token stop,
                            std::function<void(bool)> decided) {
  if (kept_.turns() == nullptr) return decided(false);
  kept_.turns()->ask(key_of(id), std::move(stop), std::move(decided));
}

void CachedStore::end_turn(const RecordId& id) { kept_.end_turn(key_of(id)); }

bool CachedStore::is_coming(const RecordId& id) const {
  FetchTurns* const turns = kept_.turns();
  return turns != nullptr && turns->is_others(key_of(id));
}

}  // namespace leat
