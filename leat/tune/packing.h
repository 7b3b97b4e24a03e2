// A linear program of few rows: the best use of a node's resources.
#pragma once
#include <span>
#include <vector>

namespace leat {

/// One for each resource.
using PackedAmounts = std::vector<double>;

/// Something of which between 0 and `most` may be had.
struct PackingItem {
  double worth = 0;          ///< The worth of one; at least 0.
  double most = 0;           ///< Finite, at least 0.
  PackedAmounts needs = {};  ///< The needs of one; at least 0.
};

/// The amounts that maximise the sum of worth within `capacity`, which may be
/// infinite. Exact but for rounding: the simplex method with bounded variables.
///
/// REQUIRES: each item needs of as many resources as there are capacities.
std::vector<double> pack(std::span<const PackingItem> items,
                         const PackedAmounts& capacity);

}  // namespace leat
