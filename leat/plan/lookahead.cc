#include "leat/plan/lookahead.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace leat {
namespace {

// More than any memory holds, and small enough to count on with.
constexpr double kMostAhead = 1e12;
constexpr double kMostFactor = 64;
constexpr int kFarLonger = 3;
// Nobody takes samples infinitely fast.
constexpr double kLeastPace = 1;
constexpr double kWeight = 1.0 / 8;

}  // namespace

Lookahead::Lookahead(std::uint64_t batch, std::uint64_t least)
    : batch_(batch), least_(std::max(least, 2 * batch)), samples_(least_) {}

void Lookahead::ask_for_at_least(std::uint64_t least) {
  least_ = std::max(least, 2 * batch_);
  choose();
}

void Lookahead::took(const Taken& batch) {
  if (batch.samples == 0) return;
  longest_ = std::max(longest_, batch.fetch);
  if (++in_period_ == kPeriod) {
    longest_before_ = std::exchange(longest_, Nanoseconds{0});
    in_period_ = 0;
  }
  const auto took = static_cast<double>((batch.busy + batch.wait).count());
  const double each =
      std::max(kLeastPace, took) / static_cast<double>(batch.samples);
  pace_ = pace_ == 0 ? each : pace_ + kWeight * (each - pace_);
  if (batch.arrival != Arrival::kOnTime) {
    calm_ = 0;
    const bool is_one_read =
        batch.usual.count() != 0 && batch.fetch > kFarLonger * batch.usual;
    const bool was_all_in_use = batch.arrival == Arrival::kBound;
    is_bound_ = was_all_in_use && !is_one_read;
    factor_ = was_all_in_use ? 1 : std::min(factor_ * 2, kMostFactor);
  } else if (++calm_ == kPeriod) {
    calm_ = 0;
    is_bound_ = false;
    factor_ = std::max(factor_ / 2, 1.0);
  }
  choose();
}

void Lookahead::choose() {
  if (pace_ == 0 || is_bound_) {  // Nothing was taken yet, or nothing helps.
    samples_ = least_;
    return;
  }
  const double latency =
      static_cast<double>(std::max(longest_, longest_before_).count());
  const double threshold = std::ceil(latency / pace_) * factor_;
  const double wanted =
      std::min(threshold + static_cast<double>(batch_), kMostAhead);
  samples_ = std::max(least_, static_cast<std::uint64_t>(wanted));
}

}  // namespace leat
