// A loader's totals since it was opened, for a tuner.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// One look at a loader. The counters only grow: two observations make rates
/// (stage_rates.h). A line of a recorded trace is one of these.
struct Observation {
  double at_seconds = 0;  ///< Since the loader was opened.

  // Counters.
  std::uint64_t samples = 0;  ///< Delivered.
  std::uint64_t batches = 0;  ///< Delivered.
  std::uint64_t epochs = 0;   ///< Begun.
  /// Seconds that training waited; also for batches yet to come.
  double wait_seconds = 0;
  double storage_wait_seconds = 0;  ///< The part for bytes from the store.
  double memory_wait_seconds = 0;   ///< The part for bytes of memory=.
  double training_seconds = 0;  ///< Between a batch and the asking for more.
  std::uint64_t reads = 0;      ///< Answered by the store.
  std::uint64_t read_bytes = 0;
  double read_seconds = 0;  ///< Sum over reads, from sent to answered.
  std::uint64_t tasks = 0;  ///< Samples that threads have worked on.
  double busy_seconds = 0;  ///< Sum over threads, in tasks.
  double cpu_seconds = 0;   ///< Sum over threads, of CPU.
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;

  // As it is now.
  std::size_t threads = 1;      ///< That may work.
  std::size_t in_flight = 1;    ///< Requests that may be.
  std::uint64_t lookahead = 0;  ///< Samples planned ahead; 0: as memory allows.
  /// Ranges of twice this and more are read in parts, each at least so long. 0:
  /// that is not to be changed, for a cache keeps what parts are cut to.
  std::uint64_t part_bytes = 0;
  std::size_t most_threads = 1;  ///< That the tuner may choose.
  std::size_t most_in_flight = 1;
  double cores = 1;  ///< That this process may use.
  /// From the store, that the node's agent allows; 0: no limit.
  std::uint64_t most_bytes_per_second = 0;
  std::uint64_t memory_bytes = 0;  ///< The budget. 0: not known.
  /// Bytes of the whole dataset. 0: not known.
  std::uint64_t data_bytes = 0;

  bool operator==(const Observation&) const = default;
};

/// One JSON object on one line, without its end.
std::string to_json(const Observation& observation);

/// Reads what to_json() wrote. Keys that it does not know are passed over;
/// those that are missing are as above.
///
/// Errors:
///   kInvalidArgument  not a JSON object, or a value that cannot be: negative,
///                     not a number, no thread
Result<Observation> parse_observation(std::string_view line);

}  // namespace leat
