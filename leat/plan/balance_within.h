// Balances a step whose micro-batches have a budget of tokens.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/balance.h"

namespace leat {

/// Items that fit their groups as they are.
struct BudgetedItems {
  std::span<const double> costs;
  std::span<const std::uint64_t> sizes;
  std::span<const std::uint32_t> groups;  ///< As in BalancedDeal.
  std::uint64_t capacity = 0;    ///< The most a group may hold, in sizes.
  std::uint64_t most_items = 0;  ///< The same in items; 0: any number.
};

/// Deals as balance() does, but no group holds more than the capacity. It goes
/// on from the groups that items are in, so there always is such a deal; the
/// better the items fill them, the less it can change. A group has
/// at least one item where it had one.
///
/// Threads: any. Takes O(n log n) time for each exchange of items, of which
/// there are at most 8 a group.
/// Errors:
///   kInvalidArgument  as balance(); an item in no group; groups that hold more
///                     than they may
Result<BalancedDeal> balance_within(const BudgetedItems& items,
                                    const BalanceOptions& options);

}  // namespace leat
