// A loader's totals since it was opened, for a tuner.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// A snapshot of a loader. The counters only grow: two observations give rates
/// (stage_rates.h). Each line of a recorded trace is one.
struct Observation {
  double at_seconds = 0;  ///< Since the loader was opened.

  // Counters.
  std::uint64_t samples = 0;  ///< Delivered.
  std::uint64_t batches = 0;  ///< Delivered.
  std::uint64_t epochs = 0;   ///< Begun.
  /// Seconds that training waited, including for batches yet to come.
  double wait_seconds = 0;
  double storage_wait_seconds = 0;  ///< The part for bytes from the store.
  double memory_wait_seconds = 0;   ///< The part for bytes of memory=.
  double training_seconds = 0;      ///< From a batch to the next call.
  std::uint64_t reads = 0;          ///< Answered by the store.
  std::uint64_t read_bytes = 0;
  double read_seconds = 0;  ///< Sum over reads, from sent to answered.
  /// Those of them that failed or were refused.
  std::uint64_t failed_reads = 0;
  /// Those that took so long that they were sent a second time.
  std::uint64_t late_reads = 0;
  std::uint64_t tasks = 0;  ///< Samples that threads have worked on.
  double busy_seconds = 0;  ///< Sum over threads, in tasks.
  double cpu_seconds = 0;   ///< Sum over threads, of CPU.
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;

  // The present state.
  std::size_t threads = 1;      ///< Those that may work.
  std::size_t in_flight = 1;    ///< Requests that may be.
  std::uint64_t lookahead = 0;  ///< Samples planned ahead; 0: as memory allows.
  /// Ranges of at least twice this are read in parts, each at least this long.
  /// 0: not to be changed, because a cache keeps the parts as they are cut.
  std::uint64_t part_bytes = 0;
  std::size_t most_threads = 1;  ///< The tuner's upper bound.
  std::size_t most_in_flight = 1;
  double cores = 1;  ///< Those it may use.
  /// The node's agent limits reads from the store to this; 0: no limit.
  std::uint64_t most_bytes_per_second = 0;
  /// The store throttles, and requests beyond this many a second
  /// wait. 0: none wait.
  double most_reads_per_second = 0;
  std::uint64_t memory_bytes = 0;  ///< The budget. 0: unknown.
  /// Bytes of the whole dataset. 0: unknown.
  std::uint64_t data_bytes = 0;

  bool operator==(const Observation&) const = default;
};

/// One JSON object on one line, without its end.
std::string to_json(const Observation& observation);

/// Reads what to_json() wrote. Ignores unknown keys; missing ones get the
/// defaults above.
///
/// Errors:
///   kInvalidArgument  not a JSON object, or an impossible value: negative,
///                     not a number, no thread
Result<Observation> parse_observation(std::string_view line);

}  // namespace leat
