// The waits of the last minute.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "leat/base/clock.h"
#include "leat/metrics/stalls.h"

namespace leat {

/// The events of the seconds before a moment.
struct RecentStalls {
  /// The time that is covered: less at the beginning.
  Nanoseconds elapsed{0};
  std::uint64_t samples = 0;  ///< Delivered.
  StallTimes stalls;          ///< Waits that ended in that time.
};

/// Waits by the second in which they ended, for the last kSeconds.
///
/// Threads: one at a time. An addition touches one second's entry: O(1).
class RollingStalls {
 public:
  static constexpr std::size_t kSeconds = 60;

  explicit RollingStalls(TimePoint now) : begun_(now) {}

  /// Adds a wait for `samples` samples that has ended now.
  /// Times do not go back.
  void add(TimePoint now, const StallTimes& times, std::uint64_t samples);

  /// The totals of the last kSeconds seconds, the current one included. A wait
  /// that began earlier counts as a whole.
  RecentStalls recent(TimePoint now) const;

 private:
  struct Second {
    std::int64_t number = -1;
    std::uint64_t samples = 0;
    StallTimes stalls;
  };

  std::int64_t number_of(TimePoint at) const;

  TimePoint begun_;
  std::array<Second, kSeconds> seconds_;
};

}  // namespace leat
