// The time of a read as a function of its length, and the best length.
#pragma once
#include <cstdint>
#include <optional>

#include "leat/tune/stage_rates.h"

namespace leat {

/// Large ranges are read in parts. With shorter parts, more of them fit into
/// the same memory, each with its own connection; with longer ones, fewer wait
/// for a first byte.
inline constexpr std::uint64_t kLeastPartBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostPartBytes = std::uint64_t{64} << 20;

/// A read of n bytes takes latency + n × seconds_per_byte.
struct ReadModel {
  double latency_seconds = 0;
  double seconds_per_byte = 0;  ///< For one of several connections.

  double seconds(double bytes) const {
    return latency_seconds + bytes * seconds_per_byte;
  }
};

/// The line through the times of reads of two lengths. None: no reads, or all
/// of one length.
std::optional<ReadModel> read_model(const StageRates& one,
                                    const StageRates& other);

/// The bounds on bytes in flight.
struct PartLimits {
  double requests = 1;  ///< Those that may be in flight.
  /// The bytes of all of them, as far as reads are planned ahead.
  double bytes = 0;
};

/// Bytes a second with reads of this length, as many in parallel as the limits
/// permit.
double bytes_a_second(const ReadModel& model, const PartLimits& limits,
                      double read_bytes);

/// The fastest length of a part, from kLeastPartBytes to kMostPartBytes, by
/// powers of two from `part_bytes`. Ties go to the longest, which takes the
/// fewest requests. `read_bytes`: the bytes of a read with the present
/// parts.
std::uint64_t best_part(const ReadModel& model, const PartLimits& limits,
                        std::uint64_t part_bytes, double read_bytes);

}  // namespace leat
