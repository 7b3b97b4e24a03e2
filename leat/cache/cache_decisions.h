// Decides, one record at a time, what the tiers of a cache are to hold.
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

/// A TierPlan that many threads ask, and that goes by what all jobs read. It
/// says what is to be written, and writes nothing: the steps of the writes that
/// it returns are to be done in the order of the calls.
///
/// Threads: any.
class CacheDecisions {
 public:
  CacheDecisions(std::vector<TierPlan::Tier> tiers, const JobUses& uses);

  /// The fastest tier that holds it, or is to.
  std::optional<std::size_t> level_of(const RecordKey& key) const;
  bool holds(std::size_t level, const RecordKey& key) const;
  /// As level_of(), of the tiers from `level` down.
  std::optional<std::size_t> level_from(std::size_t level,
                                        const RecordKey& key) const;

  /// The tier no longer has it.
  void lost(std::size_t level, const RecordKey& key);
  /// No tier has it: it did not come.
  void lost(const RecordKey& key);

  /// It was read from `tier`, of that level. With `may_rise` a faster one may
  /// take it.
  CacheWrite used(std::size_t level, const CacheUse& use, bool may_rise,
                  SegmentTier& tier);
  /// It came from the store, or was made. `asked`: see PlanClock.
  CacheWrite fetched(const CacheUse& use, AccessTime asked);
  /// It is asked of the store: decided now, put by came(). Nullopt: another
  /// read of it was first.
  std::optional<CacheWrite> sent(const CacheUse& use);
  /// A record that was decided when it was sent has come. It may be wanted
  /// still.
  CacheWrite came(const CacheUse& use);
  /// Nobody will read it again.
  CacheWrite forget(const RecordKey& key);

  /// A tier may hold so much, because somebody said so.
  CacheWrite set_capacity(std::size_t level, std::uint64_t bytes);
  /// The tier itself says how much it may hold, as others come and go. Nullopt:
  /// as much as it said last.
  std::optional<CacheWrite> allow(std::size_t level, std::uint64_t bytes);
  /// The next amount that the tier says is news.
  void forget_allowance(std::size_t level);

  /// The order of reads is another one from `now` on. Policies know of each
  /// record when it is read next, as the last read of it told; once a job goes
  /// back to a state, or jumps to another epoch, that is wrong of all that is
  /// held. By times that lie past all that now comes, what is read soonest
  /// would go first.
  CacheWrite begin_plan(AccessTime now,
                        const std::function<AccessTime(SampleId)>& next_use_of);
  /// Other jobs go on, and what they have read they read no more: tells the
  /// policy of each record whose next use has changed by more than a little.
  CacheWrite follow_jobs();

 private:
  /// A record that other jobs may want, too.
  struct Shared {
    PlannedRecord record;  ///< With the next use of this job.
    std::uint64_t sample = 0;
    AccessTime told = 0;  ///< To the policy: that of whoever is next.
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
  /// Bytes that the policies were last told tiers may hold.
  std::vector<std::uint64_t> allowed_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
