// Tracks how far the reads of a plan have come.
#pragma once
#include <optional>

#include "leat/base/mutex.h"
#include "leat/plan/cache_policy.h"

namespace leat {

/// The latest read of the running plan, and when its first epoch ended.
///
/// Threads: any.
class PlanClock {
 public:
  /// `epoch_time`: the time from one epoch to the next, on the clock of reads.
  explicit PlanClock(AccessTime epoch_time) : epoch_time_(epoch_time) {}

  /// A record that the plan has at `now` is used or made.
  void see(AccessTime now);
  /// A record that the plan has at `now` is looked up.
  void ask(AccessTime now);
  /// Another plan begins at `now`.
  void begin_plan(AccessTime now);

  /// The latest use that was looked up.
  AccessTime asked() const;
  /// The time since the plan completed its first epoch, at `now`; nullopt: it
  /// has not.
  std::optional<AccessTime> since_first_epoch(AccessTime now) const;
  AccessTime epoch_time() const { return epoch_time_; }

 private:
  const AccessTime epoch_time_;
  mutable Mutex mutex_;
  AccessTime asked_ LEAT_GUARDED_BY(mutex_) = 0;
  std::optional<AccessTime> first_epoch_end_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
