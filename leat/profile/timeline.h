// Steps and waits in a form small enough to look at, however many there are.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace leat {

/// Consecutive steps, taken together.
struct TimelineBin {
  double mean_seconds = 0;
  double most_seconds = 0;  ///< The longest of them.
  double mean_wait = 0;     ///< The part of a step inside next().
  double most_wait = 0;
};

struct Timeline {
  std::size_t steps = 0;
  std::size_t steps_a_bin = 1;  ///< The last bin may have fewer.
  std::vector<TimelineBin> bins;
};

/// At most `most_bins` bins, all of as many steps, in order.
/// REQUIRES: as many waits as steps, most_bins > 0.
Timeline timeline_of(std::span<const double> step_seconds,
                     std::span<const double> wait_seconds,
                     std::size_t most_bins);

/// The spread of waits: the seconds that half of them, nine of ten, 99 of 100
/// and all stay within. Zeros if there are none.
struct WaitSpread {
  double half = 0;
  double most_of_ten = 0;
  double most_of_hundred = 0;
  double longest = 0;
};
WaitSpread spread_of(std::vector<double> waits);

/// How many waits fall into [lower[i], lower[i + 1]); the last bin is open.
struct WaitHistogram {
  std::vector<double> lower;  ///< Seconds: 0, then each twice the one before.
  std::vector<std::size_t> counts;
};
WaitHistogram histogram_of(std::span<const double> waits);

}  // namespace leat
