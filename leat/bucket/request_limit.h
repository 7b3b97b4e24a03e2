// A limit on requests a second, as a service enforces one without telling it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// Admits a number of requests a second. A tenth of a second's worth may come
/// at once.
///
/// Pure but for its memory. Threads: any.
class RequestLimit {
 public:
  /// 0: no limit.
  explicit RequestLimit(std::uint64_t per_second)
      : per_second_(static_cast<double>(per_second)), saved_(most_saved()) {}

  bool admits(TimePoint now) {
    if (per_second_ == 0) return true;
    const MutexLock lock(mutex_);
    saved_ = std::min(most_saved(),
                      saved_ + per_second_ * to_seconds(now - seen_at_));
    seen_at_ = now;
    if (saved_ < 1) return false;
    saved_ -= 1;
    return true;
  }

 private:
  double most_saved() const { return std::max(1.0, per_second_ / 10); }

  const double per_second_;
  Mutex mutex_;
  double saved_ LEAT_GUARDED_BY(mutex_);
  TimePoint seen_at_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
