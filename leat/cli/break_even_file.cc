#include "leat/cli/break_even_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/engine/prices.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostNodes = 1 << 20;
constexpr std::uint64_t kMostEpochs = 1000000;
constexpr std::size_t kMostWays = 64;
constexpr std::size_t kMostListed = 10000;
constexpr std::uint64_t kMostRequests = std::uint64_t{1} << 53;

double count(TomlReader& reader, std::string_view key) {
  return static_cast<double>(reader.number(key, 0, kMostRequests, 0));
}

Result<WayPart> read_part(const toml::table& table, const std::string& where,
                          bool is_all_waiting) {
  TomlReader reader(table, where);
  WayPart part{
      .seconds = reader.seconds("seconds"),
      .wait_seconds = reader.seconds("wait", 0),
      .gets = count(reader, "gets"),
      .get_bytes = static_cast<double>(reader.bytes("bytes", 0)),
      .peer_bytes = static_cast<double>(reader.bytes("peer_bytes", 0))};
  if (is_all_waiting) {
    if (reader.has("wait")) {
      reader.refuse("wait", "is of an epoch: nodes wait for the whole copy");
    }
    part.wait_seconds = part.seconds;
  }
  if (part.wait_seconds > part.seconds) {
    reader.refuse("wait", "is more than the seconds that it is part of");
  }
  LEAT_TRY_VOID(reader.done());
  return part;
}

/// The epochs of a way as they were measured, or the simulation to take them
/// from.
Result<NamedWay> read_way(const toml::table& table, const std::string& where,
                          std::uint32_t nodes) {
  TomlReader reader(table, where);
  NamedWay named;
  Way& way = named.way;
  way.name = reader.text("name");
  named.simulation = reader.text("simulation", "");
  way.memory_bytes = static_cast<double>(reader.bytes("memory", 0)) * nodes;
  way.disk_bytes = static_cast<double>(reader.bytes("disk", 0)) * nodes;
  const toml::table* copy = reader.table("copy");
  const toml::array* epochs = reader.tables("epochs");
  const std::size_t listed = epochs == nullptr ? 0 : epochs->size();
  if ((listed == 0) == named.simulation.empty()) {
    reader.refuse("epochs",
                  "or simulation says what its epochs take: give one of them");
  }
  if (listed > kMostListed) {
    reader.refuse("epochs", fmt::format("are more than {}", kMostListed));
  }
  if (named.simulation.empty()) {
    way.lists = count(reader, "lists");
  } else if (reader.has("lists")) {
    reader.refuse("lists", "is what the simulation says: leave it out");
  }
  LEAT_TRY_VOID(reader.done());
  if (copy != nullptr) {
    LEAT_TRY(way.copy, read_part(*copy, where + ", copy", true));
  }
  for (std::size_t i = 0; i < listed; ++i) {
    LEAT_TRY(WayPart part,
             read_part(*epochs->get(i)->as_table(),
                       fmt::format("{}, epoch {}", where, i + 1), false));
    way.epochs.push_back(part);
  }
  return named;
}

}  // namespace

Result<NamedBreakEven> read_break_even(const toml::table& table,
                                       const std::string& where) {
  TomlReader reader(table, where);
  NamedBreakEven read;
  read.name = reader.text("name", where);
  read.epochs = reader.number("epochs", 1, kMostEpochs);
  read.nodes =
      static_cast<std::uint32_t>(reader.number("nodes", 1, kMostNodes, 1));
  const toml::table* billing = reader.table("billing");
  const toml::array* ways = reader.tables("ways");
  if (ways == nullptr || ways->size() < 2 || ways->size() > kMostWays) {
    reader.refuse("ways",
                  fmt::format("are what is compared: give 2 to {}", kMostWays));
  }
  if (billing == nullptr) {
    reader.refuse("billing", "is missing: without prices all costs nothing");
  }
  LEAT_TRY_VOID(reader.done());
  LEAT_TRY(const PricesAndBilling priced,
           read_billing(*billing, where + ", billing"));
  read.prices = priced.prices;
  read.billing = priced.billing;
  for (std::size_t i = 0; i < ways->size(); ++i) {
    const std::string here = fmt::format("{}, way {}", where, i + 1);
    LEAT_TRY(NamedWay way,
             read_way(*ways->get(i)->as_table(), here, read.nodes));
    const auto same = [&](const NamedWay& other) {
      return other.way.name == way.way.name;
    };
    if (std::ranges::any_of(read.ways, same)) {
      return invalid("{}: there is another \"{}\": give each way its own name",
                     here, way.way.name);
    }
    read.ways.push_back(std::move(way));
  }
  return read;
}

}  // namespace leat
