// The speed of one job with a grant: the model that shares are decided by. It
// is ours; docs/reference/sharing.md gives its limits.
#pragma once
#include <cstdint>
#include <limits>
#include <string_view>

namespace leat {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The properties of one job, all of its ranks on this node together. A field
/// that was not measured bounds nothing.
struct JobSpeed {
  double compute_ceiling = kUnbounded;  ///< Samples a second that training
                                        ///< takes when it never waits.
  /// Samples a second, with nothing cached.
  double rate_per_thread = kUnbounded;
  /// The reads of a sample without any cache.
  double reads_per_sample = 0;
  double read_bytes_per_sample = 0;
  double latency_seconds = 0;  ///< The latency of a read.
  /// The bytes of a whole epoch in a cache, in the form in which it keeps
  /// samples; 0: a cache is no help.
  double dataset_bytes = 0;
  /// Seconds of a thread that a hit saves: it was kept decoded.
  double saved_seconds = 0;
};

/// The resources of all its ranks on the node together. Threads and requests
/// are counted, and are whole when they are given out.
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
/// is read once an epoch, so what is kept is hit once an epoch (SiloD).
double missed_part(const JobSpeed& speed, double cache_bytes);

/// The time of one thread with so much cached; 0: threads do not bound it. A
/// hit leaves at least a hundredth.
double seconds_per_sample(const JobSpeed& speed, double cache_bytes);

struct Prediction {
  double rate = kUnbounded;  ///< Samples a second.
  Bound bound = Bound::kNothing;
};

/// min(compute ceiling, threads / seconds of one, in flight / (latency * reads
/// that miss), bandwidth / bytes that miss).
Prediction predict(const JobSpeed& speed, const Grant& grant);

}  // namespace leat
