#include "leat/cli/break_even_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "leat/base/units.h"
#include "leat/cli/plan_report.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNameWidth = 16;

Json way_json(const Way& way, const WayUse& use, const WayCost& cost) {
  return {{"name", way.name},
          {"node_hours", use.usage.node_hours},
          {"waiting_node_hours", use.waiting_node_hours},
          {"gets", use.usage.gets},
          {"lists", use.usage.lists},
          {"get_bytes", use.usage.get_bytes},
          {"peer_bytes", use.usage.peer_bytes},
          {"memory_gb_hours", use.memory_gb_hours},
          {"disk_gb_months", use.disk_gb_months},
          {"dollars",
           {{"gets", cost.run.gets},
            {"lists", cost.run.lists},
            {"nat", cost.run.nat},
            {"peers", cost.run.peers},
            {"hours", cost.run.hours},
            {"waiting", cost.waiting},
            {"memory", cost.memory},
            {"disk", cost.disk},
            {"total", cost.total()}}}};
}

std::string words_of(const std::string& price) {
  if (price == "node_per_hour") return "a node costs {} dollars an hour";
  if (price == "get_per_1000") return "1,000 GETs cost {} dollars";
  if (price == "nat_per_gb") return "a GB through the NAT costs {} dollars";
  if (price == "memory_per_gb_hour") {
    return "a GB of memory costs {} dollars an hour";
  }
  return "a GB of disk costs {} dollars a month";
}

}  // namespace

void take_from(const SimulationReport& report, const SimulationOptions& options,
               Way& way) {
  const double scale =
      options.only_ranks == 0
          ? 1
          : static_cast<double>(options.ranks) / options.only_ranks;
  const RunCost lists =
      cost_of(report, options, {.list_per_1000 = 1000}, Billing{});
  way.lists = lists.lists;
  way.epochs.clear();
  for (const EpochCounts& epoch : report.epochs) {
    way.epochs.push_back(
        {.seconds = epoch.seconds,
         .wait_seconds = epoch.wait_seconds,
         .gets = scale * static_cast<double>(epoch.gets),
         .get_bytes = scale * static_cast<double>(epoch.get_bytes),
         .peer_bytes = scale * static_cast<double>(epoch.peer_bytes)});
  }
}

Json break_even_json(const std::string& name, std::span<const Way> ways,
                     std::uint64_t epochs, std::uint32_t nodes,
                     const Prices& prices, const Billing& billing) {
  std::vector<WayUse> uses;
  std::vector<double> totals;
  Json told = {{"name", name},
               {"epochs", epochs},
               {"prices_as_of", prices.as_of},
               {"ways", Json::array()}};
  for (const Way& way : ways) {
    uses.push_back(use_of(way, epochs, nodes));
    const WayCost cost = cost_of(uses.back(), prices, billing);
    totals.push_back(cost.total());
    told["ways"].push_back(way_json(way, uses.back(), cost));
  }
  const auto best = static_cast<std::size_t>(std::ranges::min_element(totals) -
                                             totals.begin());
  told["cheapest"] = ways[best].name;
  told["by_epochs"] = Json::array();
  for (const auto& run : cheapest_by_epochs(ways, nodes, prices, billing)) {
    told["by_epochs"].push_back(
        {{"from", run.epochs}, {"way", ways[run.way].name}});
  }
  told["even"] = Json::array();
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (i == best) continue;
    for (const auto& even : even_prices(uses[best], uses[i], prices, billing)) {
      told["even"].push_back(
          {{"with", ways[i].name},
           {"price", even.price},
           {"at", even.at},
           {"cheapest_while",
            even.is_first_cheaper_below ? "below" : "above"}});
    }
  }
  return told;
}

void print_break_even(const Json& told, std::ostream& out) {
  std::size_t widest = kNameWidth;
  for (const Json& way : told["ways"]) {
    widest = std::max(widest, in_a_line(way["name"]).size());
  }
  out << fmt::format("{}, {} epoch{}, in dollars:\n", in_a_line(told["name"]),
                     told["epochs"].get<std::uint64_t>(),
                     told["epochs"] == 1 ? "" : "s");
  out << fmt::format(
      "{:<{}} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "way",
      widest, "requests", "traffic", "memory", "disk", "hours", "(waiting)",
      "total");
  for (const Json& way : told["ways"]) {
    const auto dollars = [&](const char* key) {
      return way["dollars"][key].get<double>();
    };
    out << fmt::format(
        "{:<{}} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}{}\n",
        in_a_line(way["name"]), widest,
        format_dollars(dollars("gets") + dollars("lists")),
        format_dollars(dollars("nat") + dollars("peers")),
        format_dollars(dollars("memory")), format_dollars(dollars("disk")),
        format_dollars(dollars("hours")), format_dollars(dollars("waiting")),
        format_dollars(dollars("total")),
        way["name"] == told["cheapest"] ? "  <" : "");
  }
  out << "cheapest:";
  const char* between = " ";
  for (const Json& run : told["by_epochs"]) {
    out << fmt::format("{}{} from {} epoch{}", between, in_a_line(run["way"]),
                       run["from"].get<std::uint64_t>(),
                       run["from"] == 1 ? "" : "s");
    between = ", ";
  }
  out << " on\n";
  for (const Json& even : told["even"]) {
    const std::string words = words_of(even["price"].get<std::string>());
    out << fmt::format(
        "{} costs as much as {} if {}, less {}\n", in_a_line(even["with"]),
        in_a_line(told["cheapest"]),
        fmt::format(fmt::runtime(words),
                    format_dollars(even["at"].get<double>())),
        even["cheapest_while"] == "below" ? "above that" : "below that");
  }
}

}  // namespace leat
