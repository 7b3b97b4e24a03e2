#include "leat/cli/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "leat/base/clock.h"
#include "leat/base/units.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNameWidth = 22;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

Json epoch_json(const EpochCounts& epoch) {
  return {{"reads", epoch.reads},
          {"tier_hits", epoch.tier_hits},
          {"peer_hits", epoch.peer_hits},
          {"gets", epoch.gets},
          {"get_bytes", epoch.get_bytes},
          {"peer_bytes", epoch.peer_bytes},
          {"uneven_gets", epoch.uneven_gets},
          {"seconds", epoch.seconds},
          {"wait_seconds", epoch.wait_seconds}};
}

Json cost_json(const RunCost& cost) {
  return {{"gets", cost.gets},   {"lists", cost.lists},
          {"nat", cost.nat},     {"peers", cost.peers},
          {"hours", cost.hours}, {"total", cost.total()}};
}

EpochCounts sum_of(const std::vector<EpochCounts>& epochs) {
  EpochCounts sum;
  for (const EpochCounts& epoch : epochs) {
    sum.reads += epoch.reads;
    sum.tier_hits.resize(epoch.tier_hits.size());
    for (std::size_t i = 0; i < epoch.tier_hits.size(); ++i) {
      sum.tier_hits[i] += epoch.tier_hits[i];
    }
    sum.peer_hits += epoch.peer_hits;
    sum.gets += epoch.gets;
    sum.uneven_gets += epoch.uneven_gets;
    sum.get_bytes += epoch.get_bytes;
    sum.peer_bytes += epoch.peer_bytes;
    sum.seconds += epoch.seconds;
    sum.wait_seconds += epoch.wait_seconds;
  }
  return sum;
}

/// The counts of all ranks, from those of the ranks that were simulated.
std::vector<EpochCounts> of_all_ranks(std::vector<EpochCounts> epochs,
                                      const SimulationOptions& options) {
  if (options.only_ranks == 0) return epochs;
  const auto scale = [&](std::uint64_t& count) {
    count = static_cast<std::uint64_t>(std::llround(
        static_cast<double>(count) * options.ranks / options.only_ranks));
  };
  for (EpochCounts& epoch : epochs) {
    for (std::uint64_t* count : {&epoch.reads, &epoch.peer_hits, &epoch.gets,
                                 &epoch.get_bytes, &epoch.peer_bytes}) {
      scale(*count);
    }
    for (std::uint64_t& hits : epoch.tier_hits) scale(hits);
  }
  return epochs;
}

/// The rate in the epoch that asks for most.
double gets_per_second(const std::vector<EpochCounts>& epochs) {
  double most = 0;
  for (const EpochCounts& epoch : epochs) {
    most =
        std::max(most, ratio(static_cast<double>(epoch.gets), epoch.seconds));
  }
  return most;
}

/// "12 s", "3.4 min", "5.6 h": as long as a run is.
std::string time_for_people(double seconds) {
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

std::string in_a_line(const Json& name) {
  std::string text = name.get<std::string>();
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text;
}

Json totals_json(const SimulationReport& report,
                 const SimulationOptions& options, const Prices& prices,
                 const Billing& billing) {
  const auto epochs = of_all_ranks(report.epochs, options);
  const EpochCounts sum = sum_of(epochs);
  const EpochCounts first = epochs.empty() ? EpochCounts{} : epochs.front();
  Json totals = epoch_json(sum);
  // The first epoch finds nothing in a cache and would blur the others.
  totals["hit_ratio_later"] =
      1 - ratio(static_cast<double>(sum.gets - first.gets),
                static_cast<double>(sum.reads - first.reads));
  if (report.epochs.size() < 2) totals["hit_ratio_later"] = nullptr;
  const double asked = gets_per_second(epochs);
  totals["gets_per_second"] = asked;
  totals["is_past_limit"] =
      prices.gets_per_second > 0 && asked > prices.gets_per_second;
  totals["dollars"] = cost_json(cost_of(report, options, prices, billing));
  return totals;
}

Json simulation_json(const NamedSimulation& simulation,
                     const SimulationReport& report) {
  Json epochs = Json::array();
  for (const EpochCounts& epoch :
       of_all_ranks(report.epochs, simulation.options)) {
    epochs.push_back(epoch_json(epoch));
  }
  return {{"name", simulation.name},
          {"epochs", std::move(epochs)},
          {"total", totals_json(report, simulation.options, simulation.prices,
                                simulation.billing)}};
}

Json deli_json(const NamedDeli& deli, const std::vector<DeliEpoch>& epochs) {
  Json told = Json::array();
  for (const DeliEpoch& epoch : epochs) {
    told.push_back({{"reads", epoch.reads},
                    {"misses", epoch.misses},
                    {"miss_rate", ratio(static_cast<double>(epoch.misses),
                                        static_cast<double>(epoch.reads))},
                    {"fetched", epoch.fetched},
                    {"loading_seconds", epoch.loading_seconds}});
  }
  return {{"name", deli.name}, {"epochs", std::move(told)}};
}

Json solar_json(const NamedSolar& solar,
                const std::vector<SolarEpoch>& epochs) {
  Json told = Json::array();
  for (const SolarEpoch& epoch : epochs) {
    told.push_back({{"epoch", epoch.epoch},
                    {"loads", epoch.loads},
                    {"uneven_loads", epoch.uneven_loads},
                    {"largest_local_batch", epoch.largest_local_batch}});
  }
  return {{"name", solar.name}, {"epochs", std::move(told)}};
}

Json packing_json(const PackingCost& packing) {
  return {{"gets_an_epoch", packing.gets_an_epoch},
          {"dollars_once", packing.once},
          {"dollars_saved_an_epoch", packing.saved_an_epoch},
          {"epochs_to_pay", packing.epochs_to_pay == 0
                                ? Json(nullptr)
                                : Json(packing.epochs_to_pay)}};
}

std::string format_dollars(double dollars) {
  constexpr int kCents = 2;
  constexpr int kMostDecimals = 12;
  if (dollars == 0) return "0";
  // Three digits for amounts below a dollar.
  const int leading = static_cast<int>(std::floor(std::log10(dollars)));
  const int decimals = std::clamp(kCents - leading, kCents, kMostDecimals);
  return fmt::format("{:.{}f}", dollars, decimals);
}

void print_totals(const Json& rows, std::ostream& out) {
  std::size_t widest = kNameWidth;
  for (const Json& row : rows) {
    widest = std::max(widest, in_a_line(row["name"]).size());
  }
  out << fmt::format("{:<{}} {:>7} {:>13} {:>10} {:>9} {:>10} {:>10} {:>11}\n",
                     "cache", widest, "hits*", "GETs", "read", "GETs/s", "run",
                     "waiting", "dollars");
  for (const Json& row : rows) {
    const Json& hits = row["hit_ratio_later"];
    out << fmt::format(
        "{:<{}} {:>7} {:>13} {:>10} {:>8.0f}{} {:>10} {:>10} {:>11}\n",
        in_a_line(row["name"]), widest,
        hits.is_null() ? "-"
                       : fmt::format("{:.1f} %", 100 * hits.get<double>()),
        row["gets"].get<std::uint64_t>(),
        format_bytes(row["get_bytes"].get<std::uint64_t>()),
        row["gets_per_second"].get<double>(),
        row["is_past_limit"].get<bool>() ? "!" : " ",
        time_for_people(row["seconds"].get<double>()),
        time_for_people(row["wait_seconds"].get<double>()),
        format_dollars(row["dollars"]["total"].get<double>()));
  }
  out << "* after the first epoch, peers included; ! past what the provider "
         "promises\n";
}

}  // namespace leat
