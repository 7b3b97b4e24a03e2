// The part of CachedStore that goes by another plan.
//
// Policies know the next read of each record, as its last read told it. When a
// job goes back to a state, or jumps to another epoch, that is wrong for all
// records held. Judged by times behind all new reads, the records that are read
// soonest would go first, and the tiers would hit no more than LRU does until
// each record has been read again.

#include <utility>

#include "leat/cache/cached_store.h"

namespace leat {

void CachedStore::begin_plan(
    AccessTime now, const std::function<AccessTime(SampleId)>& next_use_of) {
  {
    const MutexLock lock(mutex_);
    asked_ = now;
    free_after_.reset();  // An epoch of the new plan.
  }
  const auto own_next_use_of = [&](const PlannedRecord& record) {
    return record.sample == PlannedRecord::kNoSample
               ? now
               : next_use_of(record.sample);
  };
  Write write{.now = now};
  {
    const MutexLock lock(deciding_);
    latest_ = now;
    plan_.begin_anew(
        now,
        [&](const PlannedRecord& record) {
          if (record.next_use == kAlways) return record.next_use;
          const AccessTime own = plain_next_use(own_next_use_of(record));
          if (record.sample == PlannedRecord::kNoSample) return own;
          return next_use_of_any(own, record.sample.value, now);
        },
        write.steps);
    for (auto& [key, held] : for_others_) {
      held.record.next_use = plain_next_use(own_next_use_of(held.record));
      held.told = next_use_of_any(held.record.next_use, held.sample, now);
    }
  }
  if (write.steps.empty()) return;
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(write));
  queued_.notify_all();
}

}  // namespace leat
