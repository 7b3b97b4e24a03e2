#include "leat/engine/prices.h"

#include <fmt/format.h>

#include "leat/base/errors.h"

namespace leat {

/// The text of prices.toml, which the build embeds.
extern const std::string_view kPricesToml;

namespace {

void read_prices(TomlReader& reader, Prices& prices) {
  prices.get_per_1000 = reader.amount("get_per_1000", prices.get_per_1000);
  prices.list_per_1000 = reader.amount("list_per_1000", prices.list_per_1000);
  prices.put_per_1000 = reader.amount("put_per_1000", prices.put_per_1000);
  prices.nat_per_gb = reader.amount("nat_per_gb", prices.nat_per_gb);
  prices.zone_per_gb = reader.amount("zone_per_gb", prices.zone_per_gb);
  prices.memory_per_gb_hour =
      reader.amount("memory_per_gb_hour", prices.memory_per_gb_hour);
  prices.disk_per_gb_month =
      reader.amount("disk_per_gb_month", prices.disk_per_gb_month);
  prices.gets_per_second =
      reader.amount("gets_per_second", prices.gets_per_second);
}

Result<Prices> prices_in(std::string_view text, const std::string& name,
                         std::string_view provider, bool must_say_source) {
  LEAT_TRY(const toml::table root, parse_toml(text, name));
  const toml::table* table =
      root.get(provider) == nullptr ? nullptr : root.get(provider)->as_table();
  if (table == nullptr) {
    std::string known;
    for (const auto& [key, node] : root) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", key.str());
    }
    return invalid("{}: no prices of a provider \"{}\": there are {}", name,
                   provider, known.empty() ? "none" : known);
  }
  TomlReader reader(*table, fmt::format("{}, {}", name, provider));
  Prices prices;
  read_prices(reader, prices);
  // Shipped prices must have both a source and a date.
  if (must_say_source || reader.has("as_of")) {
    prices.as_of = reader.text("as_of");
  }
  if (must_say_source || reader.has("source")) (void)reader.text("source");
  LEAT_TRY_VOID(reader.done());
  return prices;
}

}  // namespace

Result<PricesAndBilling> read_billing(const toml::table& table,
                                      const std::string& where) {
  TomlReader reader(table, where);
  PricesAndBilling read;
  if (reader.has("provider")) {
    Result<Prices> prices = prices_of(reader.text("provider"));
    if (!prices) return std::move(prices).error().while_doing(where);
    read.prices = *std::move(prices);
  }
  read_prices(reader, read.prices);
  read.billing.node_per_hour = reader.amount("node_per_hour", 0);
  read.billing.is_behind_nat = reader.boolean("nat", false);
  read.billing.are_peers_in_zones = reader.boolean("peers_in_zones", false);
  LEAT_TRY_VOID(reader.done());
  return read;
}

Result<Prices> prices_of(std::string_view provider) {
  return prices_in(kPricesToml, "prices.toml", provider,
                   /*must_say_source=*/true);
}

Result<Prices> prices_of(std::string_view provider, std::string_view text,
                         const std::string& name) {
  return prices_in(text, name, provider, /*must_say_source=*/false);
}

}  // namespace leat
