// The rule of blame: it gives each part of the time in next() a cause.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"

namespace leat {

/// Why a training loop waited. Every nanosecond in next() has one cause.
enum class Stall : std::uint8_t {
  kStorage,    ///< Not yet sent because of the window, or in flight.
  kThrottled,  ///< Backing off before the request is sent again.
  kPeer,       ///< In flight to a peer.
  kOtherJob,   ///< Another job of the node brings or decodes it for both.
  kCacheIo,    ///< Reading from or writing to a cache.
  kMemory,     ///< Waiting for bytes of the memory budget.
  kDecode,     ///< Waiting for a thread, or in the decoder.
  kTransform,  ///< In the ops after the decoder.
  kAssemble,   ///< The batch is being put together.
  kHandover,   ///< Ready and not yet returned.
  kCount,
};

/// "storage", "throttled", …: the keys of `stalls` in reports.
std::string_view to_string(Stall stall);

/// Time by cause. Sums are exact: integer nanoseconds of one clock.
class StallTimes {
 public:
  StallTimes() = default;
  /// All of it of one cause.
  StallTimes(Stall stall, Nanoseconds time) { (*this)[stall] = time; }

  Nanoseconds& operator[](Stall stall) {
    return times_[static_cast<std::size_t>(stall)];
  }
  Nanoseconds operator[](Stall stall) const {
    return times_[static_cast<std::size_t>(stall)];
  }
  StallTimes& operator+=(const StallTimes& other);
  Nanoseconds total() const;

 private:
  std::array<Nanoseconds, static_cast<std::size_t>(Stall::kCount)> times_{};
};

/// A stretch of time.
struct Interval {
  TimePoint begin;
  TimePoint end;
};

/// A stretch of a fetch that storage is not to blame for.
struct Delay {
  Interval time;
  Stall cause = Stall::kThrottled;
};

/// The events in the life of one sample, in order of time.
struct SampleTimes {
  TimePoint reserved;  ///< All its bytes of budget were granted.
  TimePoint fetched;   ///< Its last byte came.
  TimePoint decoded;   ///< The decoder was done with it.
  TimePoint finished;  ///< It stood in its slot.
  /// When its requests waited to be sent again, or for a cache; disjoint, in
  /// order of time.
  std::vector<Delay> delays;

  /// Appends what of a delay comes after those that are known: two reads of one
  /// sample may wait side by side.
  void add(Delay delay);
};

/// Splits a wait by the state, at each moment, of the sample that finished
/// last: it is the critical path, not the share of work.
///
///   until reserved               memory
///   until fetched                storage, less its delays: throttled, peer,
///                                other_job, cache_io
///   until decoded                decode
///   until finished               transform
///   until the batch was ready    assemble
///   until `wait.end`             handover
///
/// The parts sum to wait.end - wait.begin exactly. A wait that began after one
/// of these moments has no part before it.
StallTimes blame(Interval wait, const SampleTimes& last, TimePoint batch_ready);

}  // namespace leat
