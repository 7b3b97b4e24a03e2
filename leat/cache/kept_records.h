// Finds, decides on and writes the records that a cache keeps.
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

/// The tiers of a cache and everything that manages them. It owns each part;
/// each part has its own lock.
///
/// The plan is asked before bytes are copied, so a refused record costs
/// nothing. The writer moves or frees displaced records just before it writes.
///
/// Threads: any. take() blocks for file reads. Lifetime: `metrics` (may be
/// null) must outlive it. Destruction writes what is
///           queued.
class KeptRecords {
 public:
  KeptRecords(std::vector<CacheTier> tiers, const CachedStoreOptions& options,
              CacheSharing sharing, Metrics* metrics);

  /// Fills `into` from any place that has the record, and notes the use.
  std::optional<CacheLevel> take(const CacheUse& use,
                                 std::span<std::byte> into);
  /// Another read brings the record, or has brought it, and this read is a use
  /// of it: a hit of the tier that is returned.
  CacheLevel joined(const CacheUse& use);

  /// A read goes to the store. True if the record is decided on now: then
  /// came() or lose() follows, otherwise fetched().
  bool sent(const CacheUse& use);
  void came(const CacheUse& use);
  void lose(const RecordKey& key) { decisions_.lost(key); }
  void fetched(const CacheUse& use);
  /// A caller has made the record from fetched bytes.
  void made(const CacheUse& use);
  /// Frees our record, if there is one, because another replaces it.
  void forget(const RecordKey& key);
  /// Processes that wait for the record may continue.
  void end_turn(const RecordKey& key);

  /// See CachedStore.
  void set_share(CacheLevel level, std::optional<std::uint64_t> bytes);
  void begin_plan(AccessTime now,
                  const std::function<AccessTime(SampleId)>& next_use_of);

  const std::vector<CacheTier>& tiers() const { return tiers_; }
  PlanClock& clock() { return clock_; }
  WriteQueue& queue() { return queue_; }
  const RecordLookup& lookup() const { return lookup_; }
  /// Null: other processes are not asked.
  FetchTurns* turns() const { return turns_.get(); }
  /// Null: jobs share nothing.
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
  // Destroyed before the tiers: the last of them removes its folder.
  const std::unique_ptr<JobBoard> board_;
  const bool is_in_memory_;  ///< True if all tiers are.
  PlanClock clock_;
  WriteQueue queue_;
  CacheDecisions decisions_;
  RecordLookup lookup_;
  Mutex sharing_;  ///< Held while a share changes; taken first.
  std::unique_ptr<FetchTurns> turns_;
  TierWriter writer_;  // Last: it ends turns.
};

}  // namespace leat
