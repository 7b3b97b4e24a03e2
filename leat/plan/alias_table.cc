// The alias method: A. J. Walker, "An Efficient Method for Generating Discrete
// Random Variables with General Distributions", ACM TOMS 3(3), 1977; the table
// is built as by M. D. Vose, "A Linear Algorithm for Generating Random Numbers
// with a Given Distribution", IEEE TSE 17(9), 1991.
//
// There are n columns, each of height S, the sum of all weights. Thing i has n
// * weight(i) to put into them. A thing with less than S fills its own column
// in part, and one with more gives it the rest, until all are full. We do it in
// integers, so that nothing is left over, and the order does not depend on a
// compiler's floating point.

#include "leat/plan/alias_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/uint128.h"
#include "leat/plan/divisor.h"

namespace leat {
namespace {

constexpr double kUnits = 4611686018427387904.0;  // 2^62.

/// The largest of them.
Result<double> check(std::span<const double> weights) {
  if (weights.size() > AliasTable::kMaxSize) {
    return invalid("{} weights; at most {} can be drawn from", weights.size(),
                   AliasTable::kMaxSize);
  }
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      return invalid("weight {} is {}; a weight is a finite number, 0 or more",
                     i, weights[i]);
    }
    largest = std::max(largest, weights[i]);
  }
  if (largest == 0) {
    return invalid(
        "none of the {} weights is above 0: there is nothing to draw",
        weights.size());
  }
  return largest;
}

/// As integers that sum to about 2^62. By the largest first: their sum might
/// be past any double.
std::vector<std::uint64_t> in_units(std::span<const double> weights,
                                    double largest) {
  double sum = 0;
  for (const double weight : weights) sum += weight / largest;
  std::vector<std::uint64_t> units;
  units.reserve(weights.size());
  for (const double weight : weights) {
    units.push_back(
        static_cast<std::uint64_t>(weight / largest / sum * kUnits));
  }
  return units;
}

Hash128 digest_of(std::span<const double> weights) {
  Hasher128 hasher;
  for (const double weight : weights) {
    hasher.update(std::bit_cast<std::uint64_t>(weight));
  }
  return hasher.digest();
}

}  // namespace

Result<AliasTable> AliasTable::make(std::span<const double> weights) {
  LEAT_TRY(const double largest, check(weights));
  const std::vector<std::uint64_t> units = in_units(weights, largest);
  const std::size_t n = units.size();
  AliasTable table;
  table.digest_ = digest_of(weights);
  for (const std::uint64_t unit : units) table.total_ += unit;
  const Uint128 height = table.total_;
  table.own_.resize(n);
  table.alias_.resize(n);
  std::vector<Uint128> left(n);  // To be put into columns.
  std::vector<std::uint32_t> low;
  std::vector<std::uint32_t> high;
  for (std::size_t i = 0; i < n; ++i) {
    left[i] = Uint128{units[i]} * n;
    table.alias_[i] = static_cast<std::uint32_t>(i);
    (left[i] < height ? low : high).push_back(table.alias_[i]);
  }
  while (!low.empty()) {
    // All that is left is as much as the columns that are: while one thing has
    // less than a column, another has more.
    const std::uint32_t lesser = low.back();
    const std::uint32_t greater = high.back();
    low.pop_back();
    table.own_[lesser] = static_cast<std::uint64_t>(left[lesser]);
    table.alias_[lesser] = greater;
    left[greater] -= height - left[lesser];
    if (left[greater] >= height) continue;
    high.pop_back();
    low.push_back(greater);
  }
  for (const std::uint32_t whole : high) table.own_[whole] = table.total_;
  return table;
}

// A multiply-high takes the place of a remainder (D. Lemire, "Fast Random
// Integer Generation in an Interval", 2019); its bias is below total / 2^64.
std::uint64_t AliasTable::draw(std::uint64_t column,
                               std::uint64_t within) const {
  const std::uint64_t i = Divisor::high_half(column, alias_.size());
  return Divisor::high_half(within, total_) < own_[i] ? i : alias_[i];
}

std::vector<std::uint64_t> AliasTable::shares() const {
  std::vector<Uint128> sums(own_.size());
  for (std::size_t i = 0; i < own_.size(); ++i) {
    sums[i] += own_[i];
    sums[alias_[i]] += total_ - own_[i];
  }
  std::vector<std::uint64_t> shares;
  shares.reserve(sums.size());
  for (const Uint128 sum : sums) {
    shares.push_back(static_cast<std::uint64_t>(sum / sums.size()));
  }
  return shares;
}

}  // namespace leat
