#include "leat/tune/job_speed.h"

#include <algorithm>

namespace leat {

std::string_view to_string(Bound bound) {
  switch (bound) {
    case Bound::kTraining:
      return "training";
    case Bound::kThreads:
      return "decode";
    case Bound::kInFlight:
      return "latency";
    case Bound::kBandwidth:
      return "bandwidth";
    case Bound::kNothing:
      break;
  }
  return "nothing";
}

double missed_part(const JobSpeed& speed, double cache_bytes) {
  if (speed.dataset_bytes <= 0) return 1;
  return 1 - std::clamp(cache_bytes / speed.dataset_bytes, 0.0, 1.0);
}

double seconds_per_sample(const JobSpeed& speed, double cache_bytes) {
  constexpr double kLeastPart = 0.01;
  const double seconds = 1 / speed.rate_per_thread;
  const double hits = 1 - missed_part(speed, cache_bytes);
  return seconds -
         hits * std::min(speed.saved_seconds, (1 - kLeastPart) * seconds);
}

Prediction predict(const JobSpeed& speed, const Grant& grant) {
  Prediction best;
  // The first of equals names the bound: a job at its ceiling waits for its
  // training, not for the next bound.
  const auto at_most = [&](double rate, Bound bound) {
    if (rate < best.rate) best = {rate, bound};
  };
  const double missed = missed_part(speed, grant.cache_bytes);
  const double waits = speed.latency_seconds * speed.reads_per_sample * missed;
  const double bytes = speed.read_bytes_per_sample * missed;
  const double seconds = seconds_per_sample(speed, grant.cache_bytes);
  at_most(speed.compute_ceiling, Bound::kTraining);
  if (seconds > 0) at_most(grant.threads / seconds, Bound::kThreads);
  if (waits > 0) at_most(grant.in_flight / waits, Bound::kInFlight);
  if (bytes > 0) at_most(grant.bytes_per_second / bytes, Bound::kBandwidth);
  return best;
}

}  // namespace leat
