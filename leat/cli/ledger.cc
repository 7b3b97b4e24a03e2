#include "leat/cli/ledger.h"

#include "leat/cli/number_checks.h"
#include "leat/engine/prices.h"
#include "leat/engine/read_text.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostLedgerBytes = 1 << 20;
constexpr double kMostWatts = 1e6;

}  // namespace

void LedgerFlags::add_to(CLI::App& app) {
  app.add_option("--provider", provider,
                 "the provider whose prices count: s3, gcs; else the one that "
                 "serves the data, or s3")
      ->envname("LEAT_PROVIDER");
  app.add_option("--node-per-hour", node_per_hour,
                 "dollars that a machine costs")
      ->envname("LEAT_NODE_PER_HOUR")
      ->check(amount_up_to(kMostHourly));
  app.add_option("--prices", prices_file,
                 "a TOML file of prices, in place of those that are shipped")
      ->envname("LEAT_PRICES");
  app.add_flag("--nat", is_behind_nat, "GETs pass a NAT gateway")
      ->envname("LEAT_NAT");
}

void LedgerFlags::add_grid_to(CLI::App& app) {
  app.add_option("--grid", grid,
                 "where the machine is, for CO2: eu-west-1, europe-west4, DEU, "
                 "world")
      ->envname("LEAT_GRID");
  app.add_option("--carbon", carbon_file,
                 "a TOML file of grams a kWh, in place of those that are "
                 "shipped")
      ->envname("LEAT_CARBON");
}

void LedgerFlags::add_energy_to(CLI::App& app) {
  add_grid_to(app);
  app.add_option("--core-watts", power.processor_core_watts,
                 "of a busy core, if processors cannot be measured")
      ->envname("LEAT_CORE_WATTS")
      ->check(amount_up_to(kMostWatts))
      ->capture_default_str();
  app.add_option("--memory-watts", power.memory_watts,
                 "of the machine's memory; 0: left out")
      ->envname("LEAT_MEMORY_WATTS")
      ->check(amount_up_to(kMostWatts))
      ->capture_default_str();
}

Result<Carbon> LedgerFlags::carbon() const {
  if (grid.empty()) return Carbon{};
  if (carbon_file.empty()) return carbon_of(grid);
  LEAT_TRY(const std::string text, read_text(carbon_file, kMostLedgerBytes));
  return carbon_of(grid, text, carbon_file);
}

Result<Pricing> LedgerFlags::pricing(const std::string& served_by) const {
  Pricing pricing{.provider = provider,
                  .billing = {.node_per_hour = node_per_hour,
                              .is_behind_nat = is_behind_nat},
                  .power = power};
  LEAT_TRY(pricing.carbon, carbon());
  if (pricing.provider.empty()) pricing.provider = served_by;
  if (pricing.provider.empty()) pricing.provider = "s3";
  if (prices_file.empty()) {
    LEAT_TRY(pricing.prices, prices_of(pricing.provider));
    return pricing;
  }
  LEAT_TRY(const std::string text, read_text(prices_file, kMostLedgerBytes));
  LEAT_TRY(pricing.prices, prices_of(pricing.provider, text, prices_file));
  return pricing;
}

}  // namespace leat
