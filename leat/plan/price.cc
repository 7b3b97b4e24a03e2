#include "leat/plan/price.h"

#include <algorithm>
#include <cmath>

#include "leat/plan/simulator.h"

namespace leat {
namespace {

constexpr std::uint64_t kKeysOfList = 1000;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b == 0 ? 0 : 1);
}

}  // namespace

RunCost cost_of(const Usage& usage, const Prices& prices,
                const Billing& billing) {
  RunCost cost{.gets = usage.gets / 1000 * prices.get_per_1000,
               .lists = usage.lists / 1000 * prices.list_per_1000,
               .hours = usage.node_hours * billing.node_per_hour};
  if (billing.is_behind_nat) {
    cost.nat = usage.get_bytes / kBytesOfGb * prices.nat_per_gb;
  }
  if (billing.are_peers_in_zones) {
    cost.peers = usage.peer_bytes / kBytesOfGb * prices.zone_per_gb;
  }
  return cost;
}

RunCost cost_of(const SimulationReport& report,
                const SimulationOptions& options, const Prices& prices,
                const Billing& billing) {
  const double scale =
      options.only_ranks == 0
          ? 1
          : static_cast<double>(options.ranks) / options.only_ranks;
  Usage usage{.lists = static_cast<double>(divide_up(
                  options.objects == 0 ? options.samples : options.objects,
                  kKeysOfList))};
  for (const EpochCounts& epoch : report.epochs) {
    usage.gets += scale * static_cast<double>(epoch.gets);
    usage.get_bytes += scale * static_cast<double>(epoch.get_bytes);
    usage.peer_bytes += scale * static_cast<double>(epoch.peer_bytes);
    usage.node_hours += epoch.seconds / 3600 * options.nodes;
  }
  return cost_of(usage, prices, billing);
}

PackingCost cost_of_packing(std::uint64_t samples, std::uint64_t total_bytes,
                            std::uint64_t shard_bytes,
                            std::uint64_t piece_bytes, const Prices& prices) {
  PackingCost cost;
  cost.gets_an_epoch = std::min(
      samples, std::max<std::uint64_t>(1, divide_up(total_bytes, piece_bytes)));
  const double shards =
      static_cast<double>(divide_up(total_bytes, shard_bytes));
  cost.once = static_cast<double>(samples) / 1000 * prices.get_per_1000 +
              shards / 1000 * prices.put_per_1000;
  cost.saved_an_epoch = static_cast<double>(samples - cost.gets_an_epoch) /
                        1000 * prices.get_per_1000;
  if (cost.saved_an_epoch > 0) {
    cost.epochs_to_pay =
        static_cast<std::uint64_t>(std::ceil(cost.once / cost.saved_an_epoch));
  }
  return cost;
}

}  // namespace leat
