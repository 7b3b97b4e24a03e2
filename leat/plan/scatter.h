// A keyed permutation of a few things, without a table.
#pragma once
#include <bit>
#include <cstdint>

#include "leat/base/hash.h"

namespace leat {

/// Orders `n` things under a key: rounds of multiply, add and fold over the
/// least power of two that holds n, repeated until the result is below n
/// (cycle walking; Black and Rogaway, "Ciphers with Arbitrary Finite Domains",
/// 2002).
///
/// It mixes well enough within a run of neighbours. It is no cipher, and not
/// uniform over all orders: Permutation is for whole datasets.
///
/// Threads: any; it never changes. The numbers that a key gives are part of the
/// format of a saved state.
class Scatter {
 public:
  /// REQUIRES: 0 < n <= 2^62.
  Scatter(std::uint64_t n, std::uint64_t key)
      : n_(n),
        bits_(static_cast<int>(std::bit_width(n - 1))),
        mask_((std::uint64_t{1} << bits_) - 1),
        fold_((bits_ + 1) / 2),
        add_(mix64(key)),
        multiply_(mix64(add_)) {}

  /// REQUIRES: x < n. The inverse of inverse().
  std::uint64_t at(std::uint64_t x) const {
    if (bits_ == 0) return 0;
    do {
      for (int i = 0; i < kRounds; ++i) {
        x = (x * factor(i) + term(i)) & mask_;
        x ^= x >> fold_;
      }
    } while (x >= n_);
    return x;
  }

  /// REQUIRES: y < n.
  std::uint64_t inverse(std::uint64_t y) const {
    if (bits_ == 0) return 0;
    do {
      for (int i = kRounds - 1; i >= 0; --i) {
        y ^= y >> fold_;  // 2 * fold_ >= bits_: it undoes itself.
        y = ((y - term(i)) * inverse_of(factor(i))) & mask_;
      }
    } while (y >= n_);
    return y;
  }

 private:
  static constexpr int kRounds = 7;

  std::uint64_t factor(int i) const { return std::rotr(multiply_, 11 * i) | 1; }
  std::uint64_t term(int i) const { return std::rotr(add_, 11 * i); }
  /// Modulo 2^bits_, by Newton's iteration, which doubles the right bits.
  std::uint64_t inverse_of(std::uint64_t odd) const {
    std::uint64_t x = (3 * odd) ^ 2;  // Right in the lowest five bits.
    for (int right = 5; right < bits_; right *= 2) x *= 2 - odd * x;
    return x;
  }

  std::uint64_t n_;
  int bits_;
  std::uint64_t mask_;
  int fold_;
  std::uint64_t add_;
  std::uint64_t multiply_;
};

}  // namespace leat
