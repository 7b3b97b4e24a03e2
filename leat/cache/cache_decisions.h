// Decides, one record at a time, what the tiers of a cache should hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/cache/cache_use.h"
#include "leat/cache/job_uses.h"
#include "leat/cache/segment_tier.h"
#include "leat/cache/tier_plan.h"

namespace leat {

/// A TierPlan that many threads may use, and that considers the reads of all
/// jobs. It returns the writes to do and does none itself: their steps must be
/// done in the order of the calls.
///
/// Threads: any.
class CacheDecisions {
 public:
  CacheDecisions(std::vector<TierPlan::Tier> tiers, const JobUses& uses);

  /// The fastest tier that holds it, or will.
  std::optional<std::size_t> level_of(const RecordKey& key) const;
  bool holds(std::size_t level, const RecordKey& key) const;
  /// Like level_of(), but only for the tiers from `level` down.
  std::optional<std::size_t> level_from(std::size_t level,
                                        const RecordKey& key) const;

  /// The tier no longer has the record.
  void lost(std::size_t level, const RecordKey& key);
  /// No tier has the record: it did not arrive.
  void lost(const RecordKey& key);

  /// The record was read from the tier of this level. With `may_rise` a faster
  /// tier may take it.
  CacheWrite used(std::size_t level, const CacheUse& use, bool may_rise,
                  SegmentTier& tier);
  /// The record came from the store, or was made. `asked`: see PlanClock.
  CacheWrite fetched(const CacheUse& use, AccessTime asked);
  /// The record is requested from the store: decided now, written by came().
  /// Nullopt: another read of it came first.
  std::optional<CacheWrite> sent(const CacheUse& use);
  /// A record that was decided when requested has arrived. It may still be
  /// wanted.
  CacheWrite came(const CacheUse& use);
  /// The record will never be read again.
  CacheWrite forget(const RecordKey& key);

  /// Sets how much a tier may hold, because somebody asked for it.
  CacheWrite set_capacity(std::size_t level, std::uint64_t bytes);
  /// The tier itself reports how much it may hold, as others come and go.
  /// Nullopt: nothing has changed since its last report.
  std::optional<CacheWrite> allow(std::size_t level, std::uint64_t bytes);
  /// The next amount that the tier reports counts as a change.
  void forget_allowance(std::size_t level);

  /// From `now` on, reads come in a different order. Policies know when each
  /// record is read next from its last read. Once a job goes back to a state
  /// or jumps to another epoch, that is wrong for everything held. If those
  /// times lie after all that now comes, the records read soonest would go
  /// first.
  CacheWrite begin_plan(AccessTime now,
                        const std::function<AccessTime(SampleId)>& next_use_of);
  /// Other jobs advance, and do not repeat their reads: updates the policy for
  /// each record whose next use has changed by more than a little.
  CacheWrite follow_jobs();

 private:
  /// A record that other jobs may want too.
  struct Shared {
    PlannedRecord record;  ///< With this job's next use.
    std::uint64_t sample = 0;
    AccessTime told = 0;  ///< To the policy: the next use by any job.
  };
  static constexpr std::uint64_t kNotTold = ~std::uint64_t{0};

  bool look_past_asked(const std::optional<RecordKey>& instead_of,
                       AccessTime asked, PlannedRecord& record) const
      LEAT_REQUIRES(mutex_);
  void share(const CacheUse& use, const PlannedRecord& own, AccessTime any)
      LEAT_REQUIRES(mutex_);

  const JobUses uses_;
  const std::size_t levels_;
  mutable Mutex mutex_;
  TierPlan plan_ LEAT_GUARDED_BY(mutex_);
  std::unordered_map<RecordKey, Shared, RecordKeyHash> shared_
      LEAT_GUARDED_BY(mutex_);
  AccessTime latest_ LEAT_GUARDED_BY(mutex_) = 0;
  /// The capacities that the policies were last given.
  std::vector<std::uint64_t> allowed_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
