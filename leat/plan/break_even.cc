// A way's cost is a sum of prices times uses. So it is linear in each price,
// and past the epochs that are listed it is linear in their number: each
// break-even is the crossing of two lines.

#include "leat/plan/break_even.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "leat/base/check.h"

namespace leat {
namespace {

/// Nobody trains for as many epochs as this, so a later
/// crossing does not count.
constexpr double kMostCrossing = 1e9;
/// A gain that is less of an epoch's cost is how sums round.
constexpr double kLeastGain = 1e-12;

void add(WayUse& use, const WayPart& part, double times, double nodes) {
  use.usage.gets += times * part.gets;
  use.usage.get_bytes += times * part.get_bytes;
  use.usage.peer_bytes += times * part.peer_bytes;
  use.usage.node_hours += times * part.seconds / 3600 * nodes;
  use.waiting_node_hours += times * part.wait_seconds / 3600 * nodes;
}

/// The total costs of a way, by the number of epochs.
class CostLine {
 public:
  CostLine(const Way& way, std::uint32_t nodes, const Prices& prices,
           const Billing& billing)
      : way_(way), nodes_(nodes), prices_(prices), billing_(billing) {}

  double at(std::uint64_t epochs) const {
    return cost_of(use_of(way_, epochs, nodes_), prices_, billing_).total();
  }
  /// The cost of each epoch past the listed ones. Not a difference of totals,
  /// which would be how those round.
  double slope() const {
    const Way last{.name = {},
                   .epochs = {way_.epochs.back()},
                   .memory_bytes = way_.memory_bytes,
                   .disk_bytes = way_.disk_bytes};
    return cost_of(use_of(last, 1, nodes_), prices_, billing_).total();
  }

 private:
  const Way& way_;
  const std::uint32_t nodes_;
  const Prices& prices_;
  const Billing& billing_;
};

/// The first number of epochs past `from` at which `other` costs less than
/// `now`, both lines being straight from there; none if it never does.
std::optional<std::uint64_t> crossing(const CostLine& now,
                                      const CostLine& other,
                                      std::uint64_t from) {
  const double slope = now.slope();
  const double gain = slope - other.slope();
  if (!(gain > kLeastGain * slope)) return std::nullopt;
  const double lead = other.at(from) - now.at(from);
  const double more = std::floor(std::max(lead, 0.0) / gain);
  if (more > kMostCrossing) return std::nullopt;
  const std::uint64_t epochs = from + static_cast<std::uint64_t>(more);
  // The division rounds, so that it may be one off.
  const bool is_there = epochs > from && other.at(epochs) < now.at(epochs);
  return is_there ? epochs : epochs + 1;
}

/// The index of the cheapest; an equal cost keeps `now`.
std::size_t cheapest_at(std::uint64_t epochs, std::span<const CostLine> lines,
                        std::size_t now) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].at(epochs) < lines[now].at(epochs)) now = i;
  }
  return now;
}

struct PriceOfUse {
  std::string_view name;
  double now = 0;
  double used_by_first = 0;  // In units of the price.
  double used_by_second = 0;
};

}  // namespace

WayUse use_of(const Way& way, std::uint64_t epochs, std::uint32_t nodes) {
  LEAT_CHECK(epochs > 0 && nodes > 0 && !way.epochs.empty());
  WayUse use{.usage = {.lists = way.lists}};
  add(use, way.copy, 1, nodes);
  const std::uint64_t listed =
      std::min<std::uint64_t>(epochs, way.epochs.size());
  for (std::uint64_t i = 0; i < listed; ++i) add(use, way.epochs[i], 1, nodes);
  add(use, way.epochs.back(), static_cast<double>(epochs - listed), nodes);
  const double hours = use.usage.node_hours / nodes;
  use.memory_gb_hours = way.memory_bytes / kBytesOfGb * hours;
  use.disk_gb_months = way.disk_bytes / kBytesOfGb * hours / kHoursOfMonth;
  return use;
}

WayCost cost_of(const WayUse& use, const Prices& prices,
                const Billing& billing) {
  return {.run = cost_of(use.usage, prices, billing),
          .waiting = use.waiting_node_hours * billing.node_per_hour,
          .memory = use.memory_gb_hours * prices.memory_per_gb_hour,
          .disk = use.disk_gb_months * prices.disk_per_gb_month};
}

std::vector<CheapestFrom> cheapest_by_epochs(std::span<const Way> ways,
                                             std::uint32_t nodes,
                                             const Prices& prices,
                                             const Billing& billing) {
  LEAT_CHECK(!ways.empty());
  std::vector<CostLine> lines;
  std::uint64_t listed = 1;
  for (const Way& way : ways) {
    lines.emplace_back(way, nodes, prices, billing);
    listed = std::max<std::uint64_t>(listed, way.epochs.size());
  }
  std::vector<CheapestFrom> runs{{1, cheapest_at(1, lines, 0)}};
  for (std::uint64_t epochs = 2; epochs <= listed; ++epochs) {
    const std::size_t way = cheapest_at(epochs, lines, runs.back().way);
    if (way != runs.back().way) runs.push_back({epochs, way});
  }
  std::uint64_t from = listed;
  // Each of several straight lines is the lowest once at most.
  for (std::size_t changes = 1; changes < lines.size(); ++changes) {
    std::optional<CheapestFrom> next;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto at = crossing(lines[runs.back().way], lines[i], from);
      if (at && (!next || *at < next->epochs)) next = {*at, i};
    }
    if (!next) break;
    from = next->epochs;
    runs.push_back({from, cheapest_at(from, lines, next->way)});
  }
  return runs;
}

std::vector<EvenPrice> even_prices(const WayUse& first, const WayUse& second,
                                   const Prices& prices,
                                   const Billing& billing) {
  const auto thousands = [](double count) { return count / 1000; };
  const auto gb = [](double bytes) { return bytes / kBytesOfGb; };
  std::vector<PriceOfUse> all = {
      {"node_per_hour", billing.node_per_hour, first.usage.node_hours,
       second.usage.node_hours},
      {"get_per_1000", prices.get_per_1000, thousands(first.usage.gets),
       thousands(second.usage.gets)},
      {"memory_per_gb_hour", prices.memory_per_gb_hour, first.memory_gb_hours,
       second.memory_gb_hours},
      {"disk_per_gb_month", prices.disk_per_gb_month, first.disk_gb_months,
       second.disk_gb_months}};
  if (billing.is_behind_nat) {
    all.push_back({"nat_per_gb", prices.nat_per_gb, gb(first.usage.get_bytes),
                   gb(second.usage.get_bytes)});
  }
  const double ahead = cost_of(second, prices, billing).total() -
                       cost_of(first, prices, billing).total();
  std::vector<EvenPrice> even;
  for (const PriceOfUse& price : all) {
    const double more = price.used_by_first - price.used_by_second;
    if (more == 0) continue;
    const double at = price.now + ahead / more;
    if (!(at > 0)) continue;
    even.push_back({price.name, at, /*is_first_cheaper_below=*/more > 0});
  }
  return even;
}

}  // namespace leat
