// A store with tiers in front of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/mutex.h"
#include "leat/cache/record_policy.h"
#include "leat/cache/segment_tier.h"
#include "leat/metrics/metrics.h"
#include "leat/runtime/executor.h"
#include "leat/store/record_cache.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// A tier and the policy that says what it keeps.
struct CacheTier {
  CacheLevel level = CacheLevel::kRam;
  std::unique_ptr<SegmentTier> tier;
  /// By record_cost(); its capacity is the limit of the tier.
  std::unique_ptr<RecordPolicy> policy;
  /// Outlives this process: then a record that this run does not want again is
  /// kept for the next one where there is room, and one without an ETag, which
  /// may change in between, is not kept at all.
  bool is_lasting = false;
};

struct CachedStoreOptions {
  /// In front of url_of() in the name of each record: what tells endpoints
  /// apart. Never holds credentials.
  std::string place;
  /// Samples of an epoch. What an earlier run has left of the same source is
  /// not freed before this one has been through them once.
  std::uint64_t samples = 0;
  std::size_t threads = 4;  ///< That look records up.
  /// Copies of records that wait to be written; past it they are not kept.
  std::uint64_t queue_bytes = std::uint64_t{64} << 20;
  /// How often other writers are looked at.
  Nanoseconds refresh_every = std::chrono::seconds(1);
};

/// Answers a read that has a hint from the tiers, fastest first, else from the
/// inner store, and then offers it to the tiers.
///
/// Look-ups run on threads of its own, in the order of `hint.now`: so the
/// caller waits for no disk, and a hit for no window of requests. Writing runs
/// on one more thread and delays nobody; what comes faster than a tier can
/// write is not kept, and counted. A range that is wanted while it is already
/// on its way is not asked for twice. No failure of a tier is ever a failure of
/// a read.
///
/// It keeps what callers make of a range just as well, in the same tiers and by
/// the same policies: see RecordCache.
///
/// Threads:  any; `done` runs on a thread of the inner store or on this one's.
/// Lifetime: as Store says. Destruction writes what is queued. `metrics` may be
///           null, else outlives the store.
class CachedStore final : public StoreWrapper, public RecordCache {
 public:
  CachedStore(std::unique_ptr<Store> inner, std::vector<CacheTier> tiers,
              CachedStoreOptions options, Metrics* metrics);
  ~CachedStore() override;

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

  std::optional<std::uint64_t> record_bytes(const RecordId& id) const override;
  void find(FindRequest request, std::stop_token stop, FindDone done) override;
  void keep(const RecordId& id, std::span<const std::byte> record,
            const ReadHint& hint) override;

  /// Of the largest tier, which holds what the faster ones do, of all writers.
  std::uint64_t limit_bytes() const;

  /// Waits until all that was offered so far is written or dropped: for tests.
  void drain();

 private:
  struct Flight;
  using FlightRef = std::shared_ptr<Flight>;
  /// What one tier is to do with a record.
  struct Offer {
    std::size_t level = 0;
    bool is_kept = false;
    std::vector<RecordKey> drop = {};
  };
  struct Write {
    RecordKey key;
    BufferRef bytes;  // Null if there is only something to drop.
    AccessTime now = 0;
    std::vector<Offer> offers = {};
  };

  /// A record in use: what is decided about it goes by this alone.
  struct Use {
    RecordKey key;
    ReadHint hint;
    std::span<const std::byte> bytes;
    bool has_etag = true;
    /// A record that goes where this one is taken.
    std::optional<RecordKey> instead_of = std::nullopt;
  };

  RecordKey key_of(const RecordId& id) const;
  static Use use_of(const Flight& flight);
  /// Frees a record of ours, if there is one: another one is in its place.
  void forget(const RecordKey& key, AccessTime now) LEAT_EXCLUDES(mutex_);
  void see(AccessTime now) LEAT_EXCLUDES(mutex_);
  bool may_be_here(const Flight& flight) const LEAT_EXCLUDES(mutex_);
  void look_up(const FlightRef& flight);
  std::optional<CacheLevel> take(const Use& use, std::span<std::byte> into);
  std::optional<std::size_t> find_in_tiers(const RecordKey& key,
                                           std::span<std::byte> into);
  bool copy_queued(const Use& use, std::span<std::byte> into);
  void send(const FlightRef& flight);
  void hear(const FlightRef& flight, Result<void> result);
  void answer_joined(const FlightRef& flight, const Result<void>& result);
  void finish(const FlightRef& flight, Result<void> result);
  void count_hit(ReadRequest& request, CacheLevel level);
  void count_level(CacheLevel level);

  void note_use(std::size_t level, const Use& use);
  void offer(std::size_t levels, const Use& use);
  bool fits(std::size_t level, const Use& use) const;
  AccessTime next_use(std::size_t level, const Use& use) const;
  void write_queued(const std::stop_token& stop);
  void write_one(Write& write);
  void put(std::size_t level, const Write& write);

  const CachedStoreOptions options_;
  Metrics* const metrics_;
  std::vector<CacheTier> tiers_;  // The vector and the tiers need no lock.

  mutable Mutex mutex_;
  std::unordered_map<RecordKey, FlightRef, RecordKeyHash> flights_
      LEAT_GUARDED_BY(mutex_);
  /// What is queued or being written, so that a look-up finds it.
  std::unordered_map<RecordKey, BufferRef, RecordKeyHash> unwritten_
      LEAT_GUARDED_BY(mutex_);
  std::deque<Write> queue_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t queued_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  bool is_writing_ LEAT_GUARDED_BY(mutex_) = false;
  /// When records left by earlier runs may be freed.
  std::optional<AccessTime> free_after_ LEAT_GUARDED_BY(mutex_);
  CondVar changed_;

  /// Guards the policies; taken after mutex_, never before.
  Mutex deciding_;

  std::unique_ptr<Executor> lookups_;
  std::jthread writer_;  // Last: joined before the rest dies.
};

}  // namespace leat
