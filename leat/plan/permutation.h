// A keyed permutation of [0, n) in constant time and memory.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "leat/plan/divisor.h"

namespace leat {

/// The order of `n` things under a key: `at` and its inverse, each O(1).
///
/// The permutation of a key is part of the format of a saved state: it is the
/// same on every machine and in every version, and a test pins it. Below
/// kTableBelow it is a seeded Fisher-Yates shuffle, stored as a table; from
/// there on it is a Feistel network that stores nothing (see permutation.cc).
///
/// Threads: any; it never changes. Cheap to copy.
class Permutation {
 public:
  /// Small ciphers are not uniform, and small tables are cheap.
  static constexpr std::uint64_t kTableBelow = 4096;
  /// The most things that can be ordered.
  static constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 62;

  /// `n` things in the order that `seed` and `stream` (such as an epoch)
  /// select. Takes O(1), and O(n) below kTableBelow. REQUIRES: n <= kMaxSize.
  Permutation(std::uint64_t n, std::uint64_t seed, std::uint64_t stream);

  std::uint64_t size() const { return n_; }

  /// The value at `position`. REQUIRES: position < size().
  std::uint64_t at(std::uint64_t position) const;

  /// The position of `value`: position_of(at(p)) == p. REQUIRES: value <
  /// size().
  std::uint64_t position_of(std::uint64_t value) const;

  /// The number of permutations that positions_of() looks through together.
  static constexpr std::size_t kTogether = 8;
  /// The position of `value` in each of them. A look-up waits for a chain of
  /// multiplications, so several together take little more time.
  /// REQUIRES: value < size(), which is the same for all.
  static std::array<std::uint64_t, kTogether> positions_of(
      const std::array<const Permutation*, kTogether>& orders,
      std::uint64_t value);

 private:
  static constexpr int kRounds = 8;

  struct Table {
    std::vector<std::uint16_t> at;
    std::vector<std::uint16_t> position_of;
  };
  static std::shared_ptr<const Table> make_table(std::uint64_t n,
                                                 std::uint64_t key);

  std::uint64_t encipher(std::uint64_t x) const;
  std::uint64_t decipher(std::uint64_t x) const;

  std::uint64_t n_;
  Divisor side_{1};  // The cipher permutes side * side >= n_.
  std::array<std::uint64_t, kRounds> keys_{};
  std::shared_ptr<const Table> table_;  // Null from kTableBelow on.
};

}  // namespace leat
