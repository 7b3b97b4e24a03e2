// When bytes may leave, so that no more than a rate of them do.
#pragma once
#include <cstddef>
#include <cstdint>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// A link of a given rate. Pieces pass one after another, and each takes its
/// size divided by the rate. Idle time is not saved up, so there are no bursts.
///
/// Pure but for its memory: the caller brings the time and does the waiting.
/// Threads: any.
class RateLimit {
 public:
  /// REQUIRES: `bytes_per_second` > 0
  explicit RateLimit(std::uint64_t bytes_per_second);

  /// How much to send at a time: about 2 ms of the rate.
  std::size_t piece_bytes() const { return piece_bytes_; }

  /// Takes the link for `bytes` of a sender that has been ready since `ready`.
  /// They may leave at the time returned, which may have passed: a sender whose
  /// timer was late catches up.
  TimePoint reserve(std::size_t bytes, TimePoint ready);

 private:
  const double ns_per_byte_;
  const std::size_t piece_bytes_;

  Mutex mutex_;
  TimePoint free_at_ LEAT_GUARDED_BY(mutex_){};
};

}  // namespace leat
