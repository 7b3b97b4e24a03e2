// Decides which share of a loader's samples is drawn.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "leat/base/clock.h"

namespace leat {

/// Decides how many samples of each batch a trace shows: all of the first ten
/// thousand, and then five thousand a second. Drawing one takes about two
/// microseconds in a loader that uses the processor's caches for other work, a
/// quarter of the time of the cheapest samples. With this bound drawing takes
/// at most a hundredth of a core, and a file lasts for a minute or more.
///
/// Threads: one at a time.
class TracePace {
 public:
  static constexpr double kASecond = 5000;
  static constexpr double kAtOnce = 10'000;

  /// The number of samples to draw of a batch delivered at `now`: at least one.
  /// REQUIRES: samples > 0.
  std::size_t take(std::size_t samples, TimePoint now) {
    const double passed =
        std::chrono::duration<double>(now - std::exchange(before_, now))
            .count();
    left_ = std::min(kAtOnce, left_ + kASecond * std::max(passed, 0.0));
    const auto drawn =
        std::clamp<std::size_t>(static_cast<std::size_t>(left_), 1, samples);
    left_ = std::max(left_ - static_cast<double>(drawn), 0.0);
    return drawn;
  }

 private:
  double left_ = kAtOnce;
  TimePoint before_{};
};

}  // namespace leat
