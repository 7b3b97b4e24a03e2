#include "leat/cache/tier_health.h"

#include <fmt/format.h>

#include <algorithm>

#include "leat/base/units.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

constexpr Nanoseconds kLongestLeave = std::chrono::minutes(5);

}  // namespace

bool TierHealth::may_try() const {
  return !has_failed_.load(std::memory_order_relaxed) ||
         clock_.now().time_since_epoch().count() >= left_until_.load();
}

void TierHealth::failed(std::string_view why) {
  const MutexLock lock(mutex_);
  if (!may_try()) return;  // One of several that were under way.
  left_until_ = (clock_.now() + next_leave_).time_since_epoch().count();
  has_failed_ = true;
  if (metrics_ != nullptr) metrics_->add(Metric::kCacheTierFailures, 1);
  log_warning(fmt::format("{} is left for {}, training goes on without it: {}",
                          name_, format_duration(next_leave_), why));
  next_leave_ = std::min(2 * next_leave_, kLongestLeave);
}

void TierHealth::worked() {
  if (!has_failed_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  if (!has_failed_ || !may_try()) return;
  has_failed_ = false;
  next_leave_ = kFirstLeave;
  log_info(fmt::format("{} works again", name_));
}

}  // namespace leat
