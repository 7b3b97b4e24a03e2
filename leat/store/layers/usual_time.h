// How long reads of one size usually take.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "leat/base/clock.h"

namespace leat {

/// Quantiles of recent times, to within a few percent: counts in buckets, four
/// for each doubling, of which the older are worth less. Threads: one at a
/// time.
class UsualTime {
 public:
  void add(Nanoseconds took) {
    counts_[bucket_of(took)] += 1;
    if (++all_ < kMost) return;
    all_ = 0;
    for (float& count : counts_) all_ += count /= 2;
  }

  /// The time that the share `quantile` stays below; nullopt: too few are
  /// known.
  std::optional<Nanoseconds> at(double quantile) const {
    if (all_ < kFew) return std::nullopt;
    double below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const double missing = quantile * all_ - below;
      if (counts_[i] > 0 && counts_[i] >= missing) {
        return within(i, missing / counts_[i]);
      }
      below += counts_[i];
    }
    return within(counts_.size() - 1, 1);
  }

  static constexpr double kFew = 50;

 private:
  static constexpr std::size_t kPerDoubling = 4;
  static constexpr std::size_t kBuckets = 96;  // 16 µs to 270 s.
  static constexpr double kFirst = 16'000;
  static constexpr double kMost = 2000;

  static std::size_t bucket_of(Nanoseconds took) {
    const double doublings =
        std::log2(static_cast<double>(took.count() + 1) / kFirst);
    if (!(doublings > 0)) return 0;
    return std::min(kBuckets - 1,
                    static_cast<std::size_t>(doublings * kPerDoubling) + 1);
  }
  /// 1: the upper end of the bucket.
  static Nanoseconds within(std::size_t bucket, double part) {
    const double doublings =
        (static_cast<double>(bucket) - 1 + part) / kPerDoubling;
    return Nanoseconds(
        static_cast<Nanoseconds::rep>(kFirst * std::exp2(doublings)));
  }

  std::array<float, kBuckets> counts_{};
  double all_ = 0;
};

}  // namespace leat
