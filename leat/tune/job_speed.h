// The speed of one job with a grant: the model that shares are based on. The
// model is ours; docs/reference/sharing.md gives its limits.
#pragma once
#include <cstdint>
#include <limits>
#include <string_view>

namespace leat {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The properties of one job, for all its ranks on this node together. A field
/// that was not measured sets no bound.
struct JobSpeed {
  double compute_ceiling = kUnbounded;  ///< Samples a second if training never
                                        ///< waits.
  /// Samples a second, with nothing cached.
  double rate_per_thread = kUnbounded;
  /// The reads of a sample without any cache.
  double reads_per_sample = 0;
  double read_bytes_per_sample = 0;
  double latency_seconds = 0;  ///< The latency of a read.
  /// The bytes of a whole epoch in a cache, in the form in which it keeps
  /// samples; 0: a cache does not help.
  double dataset_bytes = 0;
  /// Thread seconds that a hit on a decoded sample saves.
  double saved_seconds = 0;
};

/// The resources of all its ranks on the node together. Threads and requests
/// are whole numbers once they are granted.
struct Grant {
  double threads = kUnbounded;
  double in_flight = kUnbounded;
  double bytes_per_second = kUnbounded;
  double cache_bytes = 0;
  double disk_bytes = 0;  ///< The part of `cache_bytes` on disk: place_cache().
  double ram_bytes() const { return cache_bytes - disk_bytes; }
};

enum class Bound : std::uint8_t {
  kNothing,
  kTraining,
  kThreads,
  kInFlight,
  kBandwidth,
};

/// "training", "decode", "latency", "bandwidth", "nothing".
std::string_view to_string(Bound bound);

/// The part of an epoch that `cache_bytes` do not hold, in [0, 1]: each sample
/// is read once an epoch, so each kept one is hit once an epoch (SiloD).
double missed_part(const JobSpeed& speed, double cache_bytes);

/// A thread's time for a sample with this much cached; 0: threads set no bound.
/// Hits reduce it to a hundredth at the least.
double seconds_per_sample(const JobSpeed& speed, double cache_bytes);

struct Prediction {
  double rate = kUnbounded;  ///< Samples a second.
  Bound bound = Bound::kNothing;
};

/// min(compute ceiling, threads / seconds of one, in flight / (latency * missed
/// reads), bandwidth / missed bytes).
Prediction predict(const JobSpeed& speed, const Grant& grant);

}  // namespace leat
