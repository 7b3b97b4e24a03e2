// How far the reads of a plan have come.
#pragma once
#include <optional>

#include "leat/base/mutex.h"
#include "leat/plan/cache_policy.h"

namespace leat {

/// The latest read of the running plan, and when its first epoch was over.
///
/// Threads: any.
class PlanClock {
 public:
  /// `epoch_time`: from one epoch to the next, as reads tell time.
  explicit PlanClock(AccessTime epoch_time) : epoch_time_(epoch_time) {}

  /// A record is used or made that the plan has at `now`.
  void see(AccessTime now);
  /// A record is looked up that the plan has at `now`.
  void ask(AccessTime now);
  /// Another plan runs, from `now` on.
  void begin_plan(AccessTime now);

  /// The latest use that was looked up.
  AccessTime asked() const;
  /// The time that has passed at `now` since the plan had been through an
  /// epoch; nullopt: it has not.
  std::optional<AccessTime> since_first_epoch(AccessTime now) const;
  AccessTime epoch_time() const { return epoch_time_; }

 private:
  const AccessTime epoch_time_;
  mutable Mutex mutex_;
  AccessTime asked_ LEAT_GUARDED_BY(mutex_) = 0;
  std::optional<AccessTime> first_epoch_end_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
