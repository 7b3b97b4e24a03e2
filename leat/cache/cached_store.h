// A store with tiers in front of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/cache/cached_store_options.h"
#include "leat/cache/kept_records.h"
#include "leat/cache/read_flights.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/executor.h"
#include "leat/store/record_cache.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Answers a read from the inner store or, if it has a hint, from the
/// fastest tier that holds the record. TierPlan then decides which tier
/// keeps the record.
///
/// Lookups run on the store's own threads, in the order of `hint.now`. So the
/// caller never waits for a disk, and a hit never waits for room in the window
/// of requests. One more thread writes, and delays nobody. If records come
/// faster than a disk can write, some are not kept; these are counted. Memory
/// refuses no record: if all tiers are in memory, the thread that brings a
/// record copies it once the queue is full, and the thread that makes one
/// always copies it. A range that is already on its way is not requested again.
/// A tier that fails never makes a read fail.
///
/// Callers can keep what they make from a range in the same tiers, under the
/// same policies: see RecordCache.
///
/// With CacheSharing, if several jobs miss a record at the same time, one of
/// them fetches it. Records that another job will still read in its running
/// epoch are dropped last.
///
/// Threads: any; `done` runs on a thread of the inner store or of this one.
/// Lifetime: see Store. Destruction writes what is queued. `metrics` may be
///           null; otherwise it must outlive the store.
class CachedStore final : public StoreWrapper, public RecordCache {
 public:
  CachedStore(std::unique_ptr<Store> inner, std::vector<CacheTier> tiers,
              CachedStoreOptions options, Metrics* metrics,
              CacheSharing sharing = {});

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

  /// Bounds the records that this writer keeps in its tier of that level from
  /// now on; nullopt: an even part of the tier's limit. Returns immediately:
  /// the policy drops the surplus, and the writing thread frees it. Does
  /// nothing if there is no such tier.
  void set_share(CacheLevel level, std::optional<std::uint64_t> bytes) {
    kept_.set_share(level, bytes);
  }

  /// From `now` on reads come in a different order: a job has gone back to a
  /// state, or jumped to a later epoch. Held records are reordered immediately:
  /// a record of a known sample by `next_use_of`, any other as if it were
  /// wanted now, until it is read. Calls it once for each held record.
  void begin_plan(AccessTime now,
                  const std::function<AccessTime(SampleId)>& next_use_of) {
    kept_.begin_plan(now, next_use_of);
  }

  /// Lets at least this many bytes wait to be written, even if `queue_bytes` is
  /// less; 0: `queue_bytes` applies.
  void set_least_queue(std::uint64_t bytes) { kept_.queue().set_least(bytes); }

  std::optional<std::uint64_t> record_bytes(const RecordId& id) const override;
  void find(FindRequest request, std::stop_token stop, FindDone done) override;
  void keep(const RecordId& id, std::span<const std::byte> record,
            const ReadHint& hint) override;

  void take_turn(const RecordId& id, std::stop_token stop,
                 std::function<void(bool is_there)> decided) override;
  void end_turn(const RecordId& id) override;
  bool is_coming(const RecordId& id) const override;
  /// Null unless jobs share what they have yet to read.
  UseBoard* board() const { return kept_.board(); }

  /// The limit of all tiers, which act as one, and of all writers.
  std::uint64_t limit_bytes() const { return limit_of(kept_.tiers()); }

  /// Waits until all that was offered so far is written or dropped; for tests.
  void drain() { kept_.queue().drain(); }

 private:
  CacheUse use_of(const ReadFlight& flight) const;
  bool has_version(const ObjectId& object) const;
  RecordKey key_of(const RecordId& id) const;
  void look_up(const ReadFlightRef& flight);
  void send(const ReadFlightRef& flight);
  void fetch(const ReadFlightRef& flight);
  void hear(const ReadFlightRef& flight, Result<void> result);
  void offer(const ReadFlightRef& flight);
  void finish(const ReadFlightRef& flight, Result<void> result);
  void answer_joined(const ReadFlightRef& flight, const Result<void>& result);
  std::optional<CacheLevel> take_record(const FindRequest& request);
  void found_record(const RecordId& id, CacheLevel level);
  void count(Metric metric);
  void count_hit(const ReadRequest& request, CacheLevel level);

  const std::string place_;
  const bool keeps_bytes_;  ///< Beside the records made from them.
  Metrics* const metrics_;
  KeptRecords kept_;
  ReadFlights flights_;
  Executor lookups_;  // Last: its tasks use the rest.
};

}  // namespace leat
