// Decides how far ahead of training samples are requested.
#pragma once
#include <cstdint>

#include "leat/base/clock.h"

namespace leat {

/// Follows the time of fetches and the rate of training, so that samples are
/// requested in time and no earlier. In the terms of DELI (IC2E 2021), whose
/// authors left it open: T + F samples ahead, with T >= latency x rate, because
/// a sample requested now has to be there when all before it are used up, and
/// F, a batch, which is taken at once. The memory budget ensures T + F <= C.
///
/// The latency is the longest of the last 64 to 128 batches, since batches
/// leave in order. The rate counts the time that training waited, or a loop
/// that only reads would seem infinitely fast. If a batch is late anyway (a
/// pause of the store, or an unusually quick step), T is doubled, at most six
/// times, and halved again after 64 batches on time.
///
/// If a batch is late because every request, thread or byte was in use, no
/// lookahead could have made it earlier: the least is enough, until a batch is
/// late for another reason or 64 were on time. A batch whose last sample took
/// more than three times as long as half of them did was late because of one
/// read: asking earlier would have helped, whatever was in use.
///
/// It reads no clock. Threads: one at a time.
class Lookahead {
 public:
  /// `batch` is what training takes at a time; `least` what is always
  /// requested. The lookahead is at least two batches.
  Lookahead(std::uint64_t batch, std::uint64_t least);

  enum class Arrival : std::uint8_t {
    kOnTime,
    kLate,   ///< Training waited, and asking earlier would have helped.
    kBound,  ///< Training waited for what was all in use.
  };
  /// A batch that training took.
  struct Taken {
    std::uint64_t samples = 0;
    Nanoseconds fetch{0};  ///< The longest of its samples, from plan to slot.
    Nanoseconds usual{0};  ///< Half of them took no longer. 0: unknown.
    Nanoseconds busy{0};   ///< Training, before it asked for the batch.
    Nanoseconds wait{0};   ///< From then until it had the batch.
    Arrival arrival = Arrival::kOnTime;
  };
  void took(const Taken& batch);

  /// Sets the least lookahead from now on.
  void ask_for_at_least(std::uint64_t least);

  /// The most samples planned and not yet taken.
  std::uint64_t samples() const { return samples_; }

 private:
  void choose();

  static constexpr std::uint32_t kPeriod = 64;  // Batches.

  const std::uint64_t batch_;
  std::uint64_t least_;
  std::uint64_t samples_;
  Nanoseconds longest_{0};  // The longest times of this period, and of the one
                            // before.
  Nanoseconds longest_before_{0};
  std::uint32_t in_period_ = 0;
  double pace_ = 0;  // Nanoseconds a sample; a decaying mean. 0: unknown.
  std::uint32_t calm_ = 0;  // Batches since the last late one.
  double factor_ = 1;
  bool is_bound_ = false;
};

}  // namespace leat
