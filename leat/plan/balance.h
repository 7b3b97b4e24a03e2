// Deals the sequences of a step so that no rank waits long for another.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "leat/base/result.h"

namespace leat {

struct BalanceOptions {
  std::uint32_t ranks = 1;
  std::uint32_t micro_batches = 1;  ///< A rank's, within the step.
  /// Whether all micro-batches have equally many items, or one more. Without
  /// it, only costs count.
  bool equal_counts = true;
};

/// The deal of a step. Micro-batch m of rank r is group
/// `m * ranks + r`.
struct BalancedDeal {
  std::vector<std::uint32_t> group_of;  ///< One for each item.
  std::vector<double> costs;  ///< One for each group: the sum of its items'.
};

/// Deals the items of one step to the micro-batches of all ranks, so that they
/// take about equally long. An item is a sequence or a row of them; its cost is
/// in proportion to its time: the sum of L * L for attention, the sum of L for
/// the rest, or another function of the user's.
///
/// Ranks meet after each micro-batch, so a micro-batch takes as long as its
/// slowest rank: the deal keeps the sum of these times small. Ranks that meet
/// after the last one only want a deal of one micro-batch each, cut as one
/// likes.
///
/// The deal depends on the arguments alone, so ranks agree without messages.
///
/// Threads: any. Takes O(n log n) time for n items and groups.
/// Errors:
///   kInvalidArgument  no ranks or no micro-batches; more than 2^31 - 1 groups
///                     or items; a cost that is negative, infinite or no
///                     number; the message names its index
Result<BalancedDeal> balance(std::span<const double> costs,
                             const BalanceOptions& options);

}  // namespace leat
