#include "leat/cache/plan_clock.h"

#include <algorithm>

namespace leat {

void PlanClock::see(AccessTime now) {
  const MutexLock lock(mutex_);
  if (!first_epoch_end_) first_epoch_end_ = now + epoch_time_;
}

void PlanClock::ask(AccessTime now) {
  see(now);
  const MutexLock lock(mutex_);
  // Times of a plan only grow, unless a plan begins again at an earlier epoch.
  const bool is_another_plan = now + epoch_time_ < asked_;
  asked_ = is_another_plan ? now : std::max(asked_, now);
}

void PlanClock::begin_plan(AccessTime now) {
  const MutexLock lock(mutex_);
  asked_ = now;
  first_epoch_end_.reset();
}

AccessTime PlanClock::asked() const {
  const MutexLock lock(mutex_);
  return asked_;
}

std::optional<AccessTime> PlanClock::since_first_epoch(AccessTime now) const {
  const MutexLock lock(mutex_);
  if (!first_epoch_end_ || now < *first_epoch_end_) return std::nullopt;
  return now - *first_epoch_end_;
}

}  // namespace leat
