// DELI's rule for how much to request ahead of training, and when.
#pragma once
#include <cstdint>

#include "leat/base/result.h"

namespace leat {

struct FetchAheadOptions {
  std::uint64_t fetch_size = 1024;    ///< F: samples of a request.
  std::uint64_t queue_threshold = 0;  ///< T: ask again at this many or fewer.
};

/// Krichevsky, St Louis, Guo: DELI, IC2E 2021. Samples are drawn one by one, a
/// batch at a time; before each draw, if T or fewer requested samples are left
/// undrawn, F more are requested. So nothing is requested before the first
/// draw, and every drawn sample has been requested.
///
/// For comparison: a loader otherwise looks ahead as Lookahead says.
///
/// It only counts, and does no I/O. Make one for each epoch; the caller knows
/// its end. Threads: one at a time.
class FetchAhead {
 public:
  /// Errors: kInvalidArgument: a fetch size of 0, or a value past kMost
  static Result<FetchAhead> make(const FetchAheadOptions& options);

  /// Draws the next sample. The number to request before it: F, or none.
  std::uint64_t draw() {
    std::uint64_t more = 0;
    if (asked_ - drawn_ <= queue_threshold_) more = fetch_size_;
    asked_ += more;
    ++drawn_;
    return more;
  }

  std::uint64_t asked() const { return asked_; }
  std::uint64_t drawn() const { return drawn_; }

  static constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

 private:
  explicit FetchAhead(const FetchAheadOptions& options)
      : fetch_size_(options.fetch_size),
        queue_threshold_(options.queue_threshold) {}

  std::uint64_t fetch_size_;
  std::uint64_t queue_threshold_;
  std::uint64_t asked_ = 0;
  std::uint64_t drawn_ = 0;
};

}  // namespace leat
