// How long a bucket takes to answer.
#pragma once
#include <cstdint>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// A distribution of delays: a constant, or log-normal as real stores have it.
/// Pure: the n-th delay of a seed is always the same.
class Latency {
 public:
  Latency() = default;
  static Latency constant(Nanoseconds delay) { return Latency(delay, 0.0); }
  /// `sigma` is the standard deviation of the logarithm: at 0.5, 5 % of the
  /// delays are 2.3 times the median or more.
  static Latency lognormal(Nanoseconds median, double sigma) {
    return Latency(median, sigma);
  }

  Nanoseconds draw(std::uint64_t seed, std::uint64_t n) const;

 private:
  Latency(Nanoseconds median, double sigma) : median_(median), sigma_(sigma) {}

  Nanoseconds median_{0};
  double sigma_ = 0.0;
};

/// Reads "55ms" or "lognormal:110ms,0.5" (median, sigma).
///
/// Errors:
///   kInvalidArgument  neither, negative, or over an hour
Result<Latency> parse_latency(std::string_view text);

}  // namespace leat
