// A small linear program for the best use of a node's resources.
#pragma once
#include <span>
#include <vector>

namespace leat {

/// One for each resource.
using PackedAmounts = std::vector<double>;

/// An item, of which any amount from 0 to `most` can be chosen.
struct PackingItem {
  double worth = 0;          ///< The worth of one unit; at least 0.
  double most = 0;           ///< Finite, at least 0.
  PackedAmounts needs = {};  ///< The needs of one unit; at least 0.
};

/// The amounts that maximise the sum of worth within `capacity`, which may be
/// infinite. Exact but for rounding: the simplex method with bounded variables.
///
/// REQUIRES: each item has as many needs as there are capacities.
std::vector<double> pack(std::span<const PackingItem> items,
                         const PackedAmounts& capacity);

}  // namespace leat
