// Whether a tier that failed may be tried again.
#pragma once
#include <cstdint>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// A tier that fails is disabled: first for ten seconds, then for twice as long
/// each time, at most five minutes; then it is tried again. The log says why it
/// is disabled and when it works again.
///
/// Threads: any.
class TierHealth {
 public:
  /// A call that takes longer is a failure: it is slower than any store.
  static constexpr Nanoseconds kSlow = std::chrono::seconds(2);

  /// `name` is "the RAM tier in memory"; `clock` and `metrics` (may be null)
  /// outlive it.
  TierHealth(std::string name, const Clock& clock, Metrics* metrics)
      : name_(std::move(name)), clock_(clock), metrics_(metrics) {}

  /// False while it is disabled.
  bool may_try() const;
  void failed(std::string_view why);
  void worked();

 private:
  const std::string name_;
  const Clock& clock_;
  Metrics* const metrics_;
  std::atomic<std::int64_t> left_until_ = 0;  ///< A time of the clock, in ns.
  std::atomic<bool> has_failed_ = false;
  Mutex mutex_;
  Nanoseconds next_leave_ LEAT_GUARDED_BY(mutex_) = kFirstLeave;

  static constexpr Nanoseconds kFirstLeave = std::chrono::seconds(10);
};

}  // namespace leat
