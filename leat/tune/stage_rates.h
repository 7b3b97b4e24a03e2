// Two observations of a loader → what each of its stages takes for a sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "leat/tune/observation.h"

namespace leat {

/// The rates between two observations.
///
/// The stages are those of Plumber (Kuchnik et al., MLSys 2022): a visit ratio
/// says how many items of a stage a sample takes, and items / (time × visits)
/// how many samples a second one unit of it (a thread, a request in flight)
/// carries.
struct StageRates {
  double seconds = 0;  ///< Between the two.
  /// The pipeline's own speed: samples that threads were done with, or that
  /// were delivered where no thread works on them.
  double samples_per_second = 0;
  std::uint64_t samples = 0;  ///< Behind that number.
  /// The share of time that training waited: 0 to 1.
  double wait_share = 0;
  /// The share of time that it waited for the store.
  double storage_share = 0;
  double memory_share = 0;  ///< The share of time that it waited for memory.
  /// Samples a second that training would take if it never waited. None: it did
  /// not get to ask, or does nothing in between.
  std::optional<double> training_rate;

  double reads_per_sample = 0;  ///< Visit ratio of the store.
  /// The latency of a read. 0: none was answered.
  double latency_seconds = 0;
  double mean_in_flight = 0;  ///< Latency × rate (Little, 1961).
  double bytes_per_read = 0;
  double failed_share = 0;  ///< A share of reads: see Observation.
  double late_share = 0;
  double hit_share = 0;  ///< The share of cache look-ups that hit: 0 to 1.

  double tasks_per_sample = 0;  ///< Visit ratio of the threads: 1 or 0.
  double task_seconds = 0;      ///< Seconds of a thread. 0: there was no task.
  double task_cpu_seconds = 0;  ///< Seconds of a core.
  double mean_busy_threads = 0;

  /// Samples a second that one request in flight carries; none if no read.
  std::optional<double> per_request() const;
  /// For people: mean_in_flight, but no more than may be in flight. A read is
  /// counted when it is answered, with all the time since it was sent, perhaps
  /// beside more of them.
  double in_flight_of(std::size_t most) const;
  /// Samples a second that one thread carries; none if no task.
  std::optional<double> per_thread() const;
  /// The samples a second that one core would carry if it were ours alone; none
  /// if no CPU time was seen.
  std::optional<double> per_core() const;
};

/// REQUIRES: both are of one loader, `before` first.
StageRates rates_between(const Observation& before, const Observation& after);

}  // namespace leat
