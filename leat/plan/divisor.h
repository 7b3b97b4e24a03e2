// Division by a number known in advance.
#pragma once
#include <cstdint>

#include "leat/base/uint128.h"

namespace leat {

/// Divides by `value` with a multiplication, which takes a fraction of a
/// division's time. REQUIRES: value > 0.
class Divisor {
 public:
  explicit Divisor(std::uint64_t value)
      : value_(value), reciprocal_(~std::uint64_t{0} / value) {}

  struct Parts {
    std::uint64_t quotient = 0;
    std::uint64_t remainder = 0;
  };
  Parts divide(std::uint64_t x) const {
    // From the reciprocal it is exact or one too small.
    const std::uint64_t quotient = high_half(x, reciprocal_);
    const std::uint64_t remainder = x - quotient * value_;
    if (remainder >= value_) return {quotient + 1, remainder - value_};
    return {quotient, remainder};
  }
  std::uint64_t value() const { return value_; }

  /// The upper 64 bits of a * b.
  static std::uint64_t high_half(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>((Uint128{a} * b) >> 64);
  }

 private:
  std::uint64_t value_;
  std::uint64_t reciprocal_;
};

}  // namespace leat
