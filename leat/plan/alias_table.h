// Draws by weight in constant time.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/result.h"

namespace leat {

/// Chooses one of `n` things, each in proportion to its weight.
///
/// The choice for two random numbers is part of the format of a saved state: it
/// is the same on every machine and in every version, and a test pins it.
/// Weights become 62-bit integer shares of their sum, and from there on
/// everything is exact: a weight below 2^-62 of the sum counts as 0.
///
/// Takes 12 bytes for each thing. Threads: any; it never changes.
class AliasTable {
 public:
  /// The most things that can be drawn from.
  static constexpr std::uint64_t kMaxSize = 0xffffffff;

  /// O(n).
  ///
  /// Errors:
  ///   kInvalidArgument  a weight that is negative, infinite or no number; the
  ///                     message names its index; or none above 0
  static Result<AliasTable> make(std::span<const double> weights);

  std::uint64_t size() const { return alias_.size(); }

  /// The thing that two numbers choose, both uniform over 64 bits. Never one of
  /// weight 0. O(1).
  std::uint64_t draw(std::uint64_t column, std::uint64_t within) const;

  /// The probability of each thing, in units of 1 / total(). O(n).
  std::vector<std::uint64_t> shares() const;
  std::uint64_t total() const { return total_; }

  /// The digest of the given weights.
  Hash128 digest() const { return digest_; }

 private:
  AliasTable() = default;

  std::uint64_t total_ = 0;
  Hash128 digest_;
  std::vector<std::uint64_t> own_;    // The part of a column, out of total_,
                                      // that belongs to its own thing.
  std::vector<std::uint32_t> alias_;  // The thing that gets the rest of the
                                      // column.
};

}  // namespace leat
