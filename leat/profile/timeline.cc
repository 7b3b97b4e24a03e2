#include "leat/profile/timeline.h"

#include <algorithm>
#include <cmath>

namespace leat {
namespace {

constexpr double kFirstBound = 64e-6;
constexpr std::size_t kHistogramBins = 20;  // The last begins at 17 s.

}  // namespace

Timeline timeline_of(std::span<const double> step_seconds,
                     std::span<const double> wait_seconds,
                     std::size_t most_bins) {
  const std::size_t steps = step_seconds.size();
  Timeline timeline{.steps = steps, .bins = {}};
  timeline.steps_a_bin =
      std::max<std::size_t>((steps + most_bins - 1) / most_bins, 1);
  timeline.bins.reserve(steps / timeline.steps_a_bin + 1);
  for (std::size_t begin = 0; begin < steps; begin += timeline.steps_a_bin) {
    const std::size_t end = std::min(begin + timeline.steps_a_bin, steps);
    TimelineBin bin;
    for (std::size_t i = begin; i < end; ++i) {
      bin.mean_seconds += step_seconds[i];
      bin.mean_wait += wait_seconds[i];
      bin.most_seconds = std::max(bin.most_seconds, step_seconds[i]);
      bin.most_wait = std::max(bin.most_wait, wait_seconds[i]);
    }
    bin.mean_seconds /= static_cast<double>(end - begin);
    bin.mean_wait /= static_cast<double>(end - begin);
    timeline.bins.push_back(bin);
  }
  return timeline;
}

WaitSpread spread_of(std::vector<double> waits) {
  if (waits.empty()) return {};
  std::ranges::sort(waits);
  const auto within = [&](double share) {
    const double place = std::ceil(share * static_cast<double>(waits.size()));
    return waits[static_cast<std::size_t>(std::max(place, 1.0)) - 1];
  };
  return {within(0.5), within(0.9), within(0.99), waits.back()};
}

WaitHistogram histogram_of(std::span<const double> waits) {
  WaitHistogram histogram{.lower = {0},
                          .counts = std::vector<std::size_t>(kHistogramBins)};
  for (std::size_t i = 1; i < kHistogramBins; ++i) {
    histogram.lower.push_back(kFirstBound * std::exp2(i - 1));
  }
  for (const double wait : waits) {
    const auto above = std::ranges::upper_bound(histogram.lower, wait);
    ++histogram.counts[static_cast<std::size_t>(above -
                                                histogram.lower.begin() - 1)];
  }
  return histogram;
}

}  // namespace leat
