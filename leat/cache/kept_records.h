// The records that a cache keeps: found, decided and written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/cache/cache_decisions.h"
#include "leat/cache/cache_tiers.h"
#include "leat/cache/cached_store_options.h"
#include "leat/cache/fetch_turns.h"
#include "leat/cache/plan_clock.h"
#include "leat/cache/tier_writer.h"
#include "leat/cache/write_queue.h"

namespace leat {

/// The tiers of a cache, with all that goes by them. The owner of each part is
/// this; each part has the one lock that guards it.
///
/// The plan is asked before bytes are copied: what is refused costs nothing.
/// The writer moves or frees what it pushes out, just before it writes.
///
/// Threads:  any. take() blocks for reads of files.
/// Lifetime: `metrics` (may be null) outlives it. Destruction writes what is
///           queued.
class KeptRecords {
 public:
  KeptRecords(std::vector<CacheTier> tiers, const CachedStoreOptions& options,
              CacheSharing sharing, Metrics* metrics);

  /// Fills `into` from any place that has the record, and tells the policies.
  std::optional<CacheLevel> take(const CacheUse& use,
                                 std::span<std::byte> into);
  /// Another read brings the record, or has brought it, and this one is a use
  /// of it: a hit of the tier that is returned.
  CacheLevel joined(const CacheUse& use);

  /// A read is asked of the store. True if it is decided now whether the record
  /// is kept: then came() or lose() follows, else fetched().
  bool sent(const CacheUse& use);
  void came(const CacheUse& use);
  void lose(const RecordKey& key) { decisions_.lost(key); }
  void fetched(const CacheUse& use);
  /// A caller has made it of what was fetched.
  void made(const CacheUse& use);
  /// Frees a record of ours, if there is one: another one is in its place.
  void forget(const RecordKey& key);
  /// Processes that wait for the record may go on.
  void end_turn(const RecordKey& key);

  /// See CachedStore.
  void set_share(CacheLevel level, std::optional<std::uint64_t> bytes);
  void begin_plan(AccessTime now,
                  const std::function<AccessTime(SampleId)>& next_use_of);

  const std::vector<CacheTier>& tiers() const { return tiers_; }
  PlanClock& clock() { return clock_; }
  WriteQueue& queue() { return queue_; }
  const RecordLookup& lookup() const { return lookup_; }
  /// Null: others are not asked.
  FetchTurns* turns() const { return turns_.get(); }
  /// Null: jobs tell each other nothing.
  JobBoard* board() const { return board_.get(); }

 private:
  void used(std::size_t level, const CacheUse& use);
  void keep(CacheWrite write, const CacheUse& use, bool has_room);
  void refuse(const RecordKey& key);
  void count(Metric metric);
  std::unique_ptr<FetchTurns> make_turns(std::unique_ptr<RecordClaims> claims);

  const bool decides_when_sent_;
  Metrics* const metrics_;
  std::vector<CacheTier> tiers_;  // The vector and the tiers need no lock.
  // Dies before the tiers: the last of them removes the folder of its file.
  const std::unique_ptr<JobBoard> board_;
  const bool is_in_memory_;  ///< All of them.
  PlanClock clock_;
  WriteQueue queue_;
  CacheDecisions decisions_;
  RecordLookup lookup_;
  Mutex sharing_;  ///< Held by who changes a share, before other locks.
  std::unique_ptr<FetchTurns> turns_;
  TierWriter writer_;  // Last: it ends turns.
};

}  // namespace leat
