// The time of a read by its length, and the best length.
#pragma once
#include <cstdint>
#include <optional>

#include "leat/tune/stage_rates.h"

namespace leat {

/// Large ranges are read in parts. More short parts fit into the same memory,
/// each with a connection of its own; with long parts, fewer wait for a first
/// byte.
inline constexpr std::uint64_t kLeastPartBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMostPartBytes = std::uint64_t{64} << 20;

/// A read of n bytes takes latency + n × seconds_per_byte.
struct ReadModel {
  double latency_seconds = 0;
  double seconds_per_byte = 0;  ///< For one connection, among the others.

  double seconds(double bytes) const {
    return latency_seconds + bytes * seconds_per_byte;
  }
};

/// The line through what reads of two lengths took. None: no reads, or of the
/// same length.
std::optional<ReadModel> read_model(const StageRates& one,
                                    const StageRates& other);

/// The bounds of the bytes under way.
struct PartLimits {
  double requests = 1;  ///< That may be in flight.
  /// The bytes of all of them, as far as is planned ahead.
  double bytes = 0;
};

/// Bytes a second of reads of so many bytes: as many beside each other as the
/// limits let.
double bytes_a_second(const ReadModel& model, const PartLimits& limits,
                      double read_bytes);

/// The fastest length of a part, from kLeastPartBytes to kMostPartBytes, by
/// powers of two from `part_bytes`. Among equally fast ones it is the longest,
/// which takes the fewest requests. `read_bytes`: the bytes of a read with
/// parts as they are.
std::uint64_t best_part(const ReadModel& model, const PartLimits& limits,
                        std::uint64_t part_bytes, double read_bytes);

}  // namespace leat
