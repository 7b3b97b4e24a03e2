// How far ahead of training samples are asked for.
#pragma once
#include <cstdint>

#include "leat/base/clock.h"

namespace leat {

/// Follows the time of fetches and the rate of training, so that samples are
/// asked for in time and no earlier. In the words of DELI (IC2E 2021), whose
/// authors left it open: T + F samples ahead, with T >= latency x rate, because
/// a sample asked for now has to be there when all before it are used up, and
/// F, a batch, which is taken at once. The memory budget ensures T + F <= C.
///
/// The latency is the longest of the last 64 to 128 batches, for batches leave
/// in order. If a batch is late all the same (a pause of the store, a step that
/// was quicker than most), T is doubled, and halved again after 64 batches that
/// were not.
///
/// Pure: it sees no clock. Threads: one at a time.
class Lookahead {
 public:
  /// `batch` is what training takes at once; `least` what is always asked for.
  /// It is at least two batches.
  Lookahead(std::uint64_t batch, std::uint64_t least);

  /// A batch of `samples` was taken. `fetch` is the longest time that one of
  /// them took from its plan to its slot, `busy` what training did before it
  /// asked; `is_late` if it then had to wait for the batch.
  void took(std::uint64_t samples, Nanoseconds fetch, Nanoseconds busy,
            bool is_late);

  /// The least lookahead from now on.
  void ask_for_at_least(std::uint64_t least);

  /// Samples planned and not yet taken: as many as this, and no more.
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
  double busy_per_sample_ = 0;  // Nanoseconds; a mean that forgets. 0: unknown.
  std::uint32_t calm_ = 0;      // Batches since one was late.
  double factor_ = 1;
};

}  // namespace leat
