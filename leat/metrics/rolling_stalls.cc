#include "leat/metrics/rolling_stalls.h"

#include <algorithm>
#include <chrono>

namespace leat {

std::int64_t RollingStalls::number_of(TimePoint at) const {
  return std::max<std::int64_t>(
      std::chrono::floor<std::chrono::seconds>(at - begun_).count(), 0);
}

void RollingStalls::add(TimePoint now, const StallTimes& times,
                        std::uint64_t samples) {
  const std::int64_t number = number_of(now);
  Second& second = seconds_.at(static_cast<std::size_t>(number) % kSeconds);
  if (second.number != number) second = {.number = number, .stalls = {}};
  second.samples += samples;
  second.stalls += times;
}

RecentStalls RollingStalls::recent(TimePoint now) const {
  const std::int64_t last = number_of(now);
  const std::int64_t first =
      std::max<std::int64_t>(last - static_cast<std::int64_t>(kSeconds) + 1, 0);
  RecentStalls recent{.elapsed = now - begun_ - std::chrono::seconds(first),
                      .stalls = {}};
  for (const Second& second : seconds_) {
    if (second.number < first || second.number > last) continue;
    recent.samples += second.samples;
    recent.stalls += second.stalls;
  }
  return recent;
}

}  // namespace leat
