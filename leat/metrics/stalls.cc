#include "leat/metrics/stalls.h"

#include <algorithm>

namespace leat {

std::string_view to_string(Stall stall) {
  switch (stall) {
    case Stall::kStorage:
      return "storage";
    case Stall::kThrottled:
      return "throttled";
    case Stall::kPeer:
      return "peer";
    case Stall::kOtherJob:
      return "other_job";
    case Stall::kCacheIo:
      return "cache_io";
    case Stall::kMemory:
      return "memory";
    case Stall::kDecode:
      return "decode";
    case Stall::kTransform:
      return "transform";
    case Stall::kAssemble:
      return "assemble";
    case Stall::kHandover:
      return "handover";
    case Stall::kCount:
      break;
  }
  return "unknown";
}

StallTimes& StallTimes::operator+=(const StallTimes& other) {
  for (std::size_t i = 0; i < times_.size(); ++i) times_[i] += other.times_[i];
  return *this;
}

Nanoseconds StallTimes::total() const {
  Nanoseconds sum{0};
  for (const Nanoseconds time : times_) sum += time;
  return sum;
}

void SampleTimes::add(Delay delay) {
  if (!delays.empty()) {
    delay.time.begin = std::max(delay.time.begin, delays.back().time.end);
  }
  if (delay.time.begin < delay.time.end) delays.push_back(delay);
}

StallTimes blame(Interval wait, const SampleTimes& last,
                 TimePoint batch_ready) {
  StallTimes times;
  TimePoint at = wait.begin;
  // Gives the time up to `until` to `stall`; past times get nothing.
  const auto give = [&](Stall stall, TimePoint until) {
    until = std::min(until, wait.end);
    if (until <= at) return;
    times[stall] += until - at;
    at = until;
  };
  give(Stall::kMemory, last.reserved);
  for (const Delay& delay : last.delays) {
    if (delay.time.begin >= last.fetched) break;
    give(Stall::kStorage, delay.time.begin);
    give(delay.cause, std::min(delay.time.end, last.fetched));
  }
  give(Stall::kStorage, last.fetched);
  give(Stall::kDecode, last.decoded);
  give(Stall::kTransform, last.finished);
  give(Stall::kAssemble, batch_ready);
  give(Stall::kHandover, wait.end);
  return times;
}

}  // namespace leat
