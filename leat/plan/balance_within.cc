// A descent: the heaviest group gives an item to a lighter one, or exchanges
// one with it, as long as the heavier of both becomes lighter and both keep
// within the capacity. It begins with the groups as they are, and with a deal
// of the heaviest items first to the lightest group with room, if that places
// all; the better end is taken.

#include "leat/plan/balance_within.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::size_t kExchanges = 8;  ///< For each group.
constexpr std::size_t kPartners = 8;   ///< Lightest groups that are tried.

struct Group {
  std::vector<std::uint32_t> items;
  double cost = 0;
  std::uint64_t size = 0;
};

/// An item for another one, or for none.
struct Exchange {
  double larger = 0;  ///< The cost of the heavier group afterwards.
  std::size_t given = 0;
  std::optional<std::size_t> taken;
};

class Descent {
 public:
  Descent(const BudgetedItems& items, std::size_t groups)
      : items_(items), groups_(groups) {}

  void add(std::size_t group, std::uint32_t item) {
    Group& into = groups_[group];
    into.items.push_back(item);
    into.cost += items_.costs[item];
    into.size += items_.sizes[item];
  }
  bool has_room(std::size_t group, std::uint32_t item) const {
    return has_place(groups_[group]) &&
           groups_[group].size + items_.sizes[item] <= items_.capacity;
  }
  const Group& group(std::size_t number) const { return groups_[number]; }

  bool has_place(const Group& group) const {
    return items_.most_items == 0 || group.items.size() < items_.most_items;
  }

  /// The heaviest items first. False if one finds no room.
  bool place_all() {
    std::vector<std::uint32_t> falling(items_.costs.size());
    std::iota(falling.begin(), falling.end(), 0U);
    std::ranges::stable_sort(falling, std::greater<>(),
                             [&](std::uint32_t i) { return items_.costs[i]; });
    for (const std::uint32_t item : falling) {
      std::optional<std::size_t> lightest;
      for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (!has_room(group, item)) continue;
        if (!lightest || groups_[group].cost < groups_[*lightest].cost) {
          lightest = group;
        }
      }
      if (!lightest) return false;
      add(*lightest, item);
    }
    return std::ranges::none_of(
        groups_, [](const Group& group) { return group.items.empty(); });
  }

  void run() {
    for (Group& group : groups_) sort(group);
    for (std::size_t i = 0; i < kExchanges * groups_.size(); ++i) {
      if (!exchange_once()) return;
    }
  }

  double largest() const {
    return std::ranges::max_element(groups_, {}, &Group::cost)->cost;
  }

 private:
  void sort(Group& group) const {
    std::ranges::stable_sort(group.items, std::less<>(), [&](std::uint32_t i) {
      return std::pair(items_.costs[i], i);
    });
  }

  bool exchange_once() {
    std::vector<std::size_t> rising(groups_.size());
    std::iota(rising.begin(), rising.end(), std::size_t{0});
    std::ranges::stable_sort(rising, std::less<>(),
                             [&](std::size_t i) { return groups_[i].cost; });
    const std::size_t heaviest = rising.back();
    std::optional<Exchange> best;
    std::size_t partner = 0;
    for (std::size_t i = 0; i < std::min(kPartners, rising.size() - 1); ++i) {
      const auto found = best_between(groups_[heaviest], groups_[rising[i]]);
      if (!found || (best && best->larger <= found->larger)) continue;
      best = found;
      partner = rising[i];
    }
    if (!best) return false;
    apply(groups_[heaviest], groups_[partner], *best);
    return true;
  }

  std::optional<Exchange> best_between(const Group& heavy,
                                       const Group& light) const {
    std::optional<Exchange> best;
    const double wanted = (heavy.cost - light.cost) / 2;
    for (std::size_t given = 0; given < heavy.items.size(); ++given) {
      if (heavy.items.size() > 1) consider(heavy, light, given, {}, best);
      const double other = items_.costs[heavy.items[given]] - wanted;
      const auto near = std::ranges::lower_bound(
          light.items, other, std::less<>(),
          [&](std::uint32_t i) { return items_.costs[i]; });
      const auto at = static_cast<std::size_t>(near - light.items.begin());
      const std::size_t end = std::min(light.items.size(), at + 3);
      for (std::size_t taken = at < 3 ? 0 : at - 3; taken < end; ++taken) {
        consider(heavy, light, given, taken, best);
      }
    }
    return best;
  }

  void consider(const Group& heavy, const Group& light, std::size_t given,
                std::optional<std::size_t> taken,
                std::optional<Exchange>& best) const {
    const std::uint32_t from = heavy.items[given];
    if (!taken && !has_place(light)) return;
    double moved = items_.costs[from];
    std::uint64_t heavy_size = heavy.size - items_.sizes[from];
    std::uint64_t light_size = light.size + items_.sizes[from];
    if (taken) {
      const std::uint32_t back = light.items[*taken];
      moved -= items_.costs[back];
      heavy_size += items_.sizes[back];
      light_size -= items_.sizes[back];
    }
    if (heavy_size > items_.capacity || light_size > items_.capacity) return;
    const double larger = std::max(heavy.cost - moved, light.cost + moved);
    // A gain so small that rounding could make it does not count. Otherwise two
    // groups would exchange like items for ever.
    if (larger >= heavy.cost * (1 - 1e-9)) return;
    if (best && best->larger <= larger) return;
    best = {.larger = larger, .given = given, .taken = taken};
  }

  void apply(Group& heavy, Group& light, const Exchange& exchange) {
    const auto at = [](Group& group, std::size_t place) {
      return group.items.begin() + static_cast<std::ptrdiff_t>(place);
    };
    const std::uint32_t given = heavy.items[exchange.given];
    heavy.items.erase(at(heavy, exchange.given));
    if (exchange.taken) {
      heavy.items.push_back(light.items[*exchange.taken]);
      light.items.erase(at(light, *exchange.taken));
    }
    light.items.push_back(given);
    for (Group* group : {&heavy, &light}) {
      sort(*group);
      group->cost = 0;  // Anew, so that rounding does not add up.
      group->size = 0;
      for (const std::uint32_t item : group->items) {
        group->cost += items_.costs[item];
        group->size += items_.sizes[item];
      }
    }
  }

  const BudgetedItems& items_;
  std::vector<Group> groups_;
};

/// The heaviest groups make up a micro-batch, then the next.
BalancedDeal in_micro_batches(const Descent& descent, std::size_t items,
                              const BalanceOptions& options) {
  const std::size_t groups = std::size_t{options.ranks} * options.micro_batches;
  std::vector<std::size_t> falling(groups);
  std::iota(falling.begin(), falling.end(), std::size_t{0});
  std::ranges::stable_sort(falling, std::greater<>(), [&](std::size_t i) {
    return descent.group(i).cost;
  });
  BalancedDeal deal;
  deal.group_of.resize(items);
  deal.costs.resize(groups);
  for (std::size_t i = 0; i < groups; ++i) {
    // Every second micro-batch the other way, so that ranks do alike in all.
    const std::size_t micro_batch = i / options.ranks;
    const std::size_t place = i % options.ranks;
    const std::size_t rank =
        micro_batch % 2 == 0 ? place : options.ranks - 1 - place;
    const std::size_t to = micro_batch * options.ranks + rank;
    deal.costs[to] = descent.group(falling[i]).cost;
    for (const std::uint32_t item : descent.group(falling[i]).items) {
      deal.group_of[item] = static_cast<std::uint32_t>(to);
    }
  }
  return deal;
}

}  // namespace

Result<BalancedDeal> balance_within(const BudgetedItems& items,
                                    const BalanceOptions& options) {
  // As it checks its arguments.
  LEAT_TRY_VOID(balance(items.costs, {.ranks = options.ranks,
                                      .micro_batches = options.micro_batches,
                                      .equal_counts = false}));
  const std::size_t groups = std::size_t{options.ranks} * options.micro_batches;
  if (items.sizes.size() != items.costs.size() ||
      items.groups.size() != items.costs.size()) {
    return invalid("costs, sizes and groups of different numbers of items");
  }
  Descent as_given(items, groups);
  for (std::uint32_t item = 0; item < items.groups.size(); ++item) {
    const std::uint32_t group = items.groups[item];
    if (group >= groups || !as_given.has_room(group, item)) {
      return invalid(
          "item {} is in group {}; there are {} groups, of at most {} each",
          item, group, groups, items.capacity);
    }
    as_given.add(group, item);
  }
  as_given.run();
  Descent anew(items, groups);
  const bool is_placed = anew.place_all();
  if (is_placed) anew.run();
  const bool is_better = is_placed && anew.largest() < as_given.largest();
  return in_micro_batches(is_better ? anew : as_given, items.costs.size(),
                          options);
}

}  // namespace leat
