#include "leat/cli/ledger.h"

#include <nlohmann/json.hpp>

#include "leat/cli/number_checks.h"
#include "leat/cli/read_text.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostFileBytes = 1 << 20;

}  // namespace

void LedgerFlags::add_to(CLI::App& app) {
  app.add_option("--provider", provider, "whose prices: s3, gcs")
      ->capture_default_str();
  app.add_option("--node-per-hour", node_per_hour,
                 "dollars that a machine costs")
      ->envname("LEAT_NODE_PER_HOUR")
      ->check(amount_up_to(kMostHourly));
  app.add_option("--prices", prices_file,
                 "a TOML file of prices, in place of those that are shipped");
  app.add_flag("--nat", is_behind_nat, "GETs pass a NAT gateway");
}

Result<Prices> LedgerFlags::prices() const {
  if (prices_file.empty()) return prices_of(provider);
  LEAT_TRY(const std::string text, read_text(prices_file, kMostFileBytes));
  return prices_of(provider, text, prices_file);
}

Result<nlohmann::ordered_json> ledger_json(const LedgerCounts& counts,
                                           const LedgerFlags& flags) {
  LEAT_TRY(const Prices prices, flags.prices());
  const Billing billing{.node_per_hour = flags.node_per_hour,
                        .is_behind_nat = flags.is_behind_nat};
  const RunCost cost = cost_of(counts.usage, prices, billing);
  // Nodes stand still as long as their accelerators do, taken together.
  const Usage stalled{.node_hours = counts.stalled_accelerator_seconds / 3600 /
                                    counts.accelerators_a_node};
  nlohmann::ordered_json told = {
      {"provider", flags.provider},
      {"gets", counts.usage.gets},
      {"lists", counts.usage.lists},
      {"bytes", counts.usage.get_bytes},
      {"stalled_accelerator_seconds", counts.stalled_accelerator_seconds},
      {"request_dollars", cost.gets + cost.lists},
      {"transfer_dollars", cost.nat},
      {"stalled_dollars", cost_of(stalled, prices, billing).hours}};
  if (counts.processor_joules) {
    told["processor_joules"] = *counts.processor_joules;
  }
  if (counts.accelerator_joules) {
    told["accelerator_joules"] = *counts.accelerator_joules;
  }
  return told;
}

}  // namespace leat
