#include "leat/plan/lookahead.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat {
namespace {

// More than any memory holds, and small enough to count on with.
constexpr double kMostSamples = 1e12;
constexpr double kMostFactor = 1e6;
// A loop that does nothing between batches is not infinitely fast.
constexpr double kLeastBusy = 1;
constexpr double kWeight = 1.0 / 8;

}  // namespace

Lookahead::Lookahead(std::uint64_t batch, std::uint64_t least)
    : batch_(batch), least_(std::max(least, 2 * batch)), samples_(least_) {}

void Lookahead::ask_for_at_least(std::uint64_t least) {
  least_ = std::max(least, 2 * batch_);
  choose();
}

void Lookahead::took(std::uint64_t samples, Nanoseconds fetch, Nanoseconds busy,
                     bool is_late) {
  if (samples == 0) return;
  longest_ = std::max(longest_, fetch);
  if (++in_period_ == kPeriod) {
    longest_before_ = std::exchange(longest_, Nanoseconds{0});
    in_period_ = 0;
  }
  const double each = std::max(kLeastBusy, static_cast<double>(busy.count())) /
                      static_cast<double>(samples);
  busy_per_sample_ =
      busy_per_sample_ == 0
          ? each
          : busy_per_sample_ + kWeight * (each - busy_per_sample_);
  if (is_late) {
    calm_ = 0;
    factor_ = std::min(factor_ * 2, kMostFactor);
  } else if (++calm_ == kPeriod) {
    calm_ = 0;
    factor_ = std::max(factor_ / 2, 1.0);
  }
  choose();
}

void Lookahead::choose() {
  if (busy_per_sample_ == 0) {  // Nothing was taken yet.
    samples_ = least_;
    return;
  }
  const double latency =
      static_cast<double>(std::max(longest_, longest_before_).count());
  const double threshold = std::ceil(latency / busy_per_sample_) * factor_;
  const double wanted =
      std::min(threshold + static_cast<double>(batch_), kMostSamples);
  samples_ = std::max(least_, static_cast<std::uint64_t>(wanted));
}

}  // namespace leat
