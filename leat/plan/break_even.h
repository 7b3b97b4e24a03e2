// Which way of bringing data to a training is the cheapest, and when: from the
// bucket in each epoch, through a rented cache, or from a copy on a rented
// disk.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/plan/price.h"

namespace leat {

/// The requests and the time of an epoch, or of a copy before the first one.
/// Counts are of all nodes; seconds are those of the job.
struct WayPart {
  double seconds = 0;
  double wait_seconds = 0;  ///< The part in which training lacks data.
  double gets = 0;
  double get_bytes = 0;
  double peer_bytes = 0;
};

/// One way of bringing the data: what it sends, takes and rents.
struct Way {
  std::string name;
  /// Before the first epoch; the nodes wait for all of it.
  WayPart copy = {};
  double lists = 0;
  /// The epochs, in order; at least one. Later epochs are like the last.
  std::vector<WayPart> epochs = {};
  /// Rented for the whole run, on all nodes together.
  double memory_bytes = 0;
  double disk_bytes = 0;
};

/// The use of a way, in the units of prices.
struct WayUse {
  Usage usage = {};
  double waiting_node_hours = 0;  ///< A part of usage.node_hours.
  double memory_gb_hours = 0;
  double disk_gb_months = 0;
};

struct WayCost {
  RunCost run = {};
  double waiting = 0;  ///< The part of run.hours in which nodes lack data.
  double memory = 0;
  double disk = 0;
  double total() const { return run.total() + memory + disk; }
};

/// A month, as providers count it.
inline constexpr double kHoursOfMonth = 730;

/// REQUIRES: epochs > 0, nodes > 0, the way has an epoch.
WayUse use_of(const Way& way, std::uint64_t epochs, std::uint32_t nodes);
WayCost cost_of(const WayUse& use, const Prices& prices,
                const Billing& billing);

/// From this number of epochs on, until that of the next entry, this
/// way is the cheapest.
struct CheapestFrom {
  std::uint64_t epochs = 1;
  std::size_t way = 0;  ///< Its index.
};

/// The cheapest way for each number of epochs, from 1 on without an end. Equal
/// costs keep the way that was the cheapest; at first, the one listed first.
/// REQUIRES: ways is not empty; nodes > 0.
std::vector<CheapestFrom> cheapest_by_epochs(std::span<const Way> ways,
                                             std::uint32_t nodes,
                                             const Prices& prices,
                                             const Billing& billing);

/// A price at which two ways cost the same, all other prices unchanged.
struct EvenPrice {
  std::string_view price;  ///< The key of the price: "node_per_hour".
  double at = 0;
  bool is_first_cheaper_below = false;
};

/// The price at which `first` and `second` are equal, for each kind that has
/// one: costs are linear in prices, so there is at most one, above 0.
std::vector<EvenPrice> even_prices(const WayUse& first, const WayUse& second,
                                   const Prices& prices,
                                   const Billing& billing);

}  // namespace leat
