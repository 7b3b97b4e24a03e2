// leat plan URL    What a cache, a policy or more nodes would buy: a
// simulation, before anyone pays.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cli/break_even_report.h"
#include "leat/cli/break_even_sweep.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/ledger.h"
#include "leat/cli/number_checks.h"
#include "leat/cli/plan_report.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/prices.h"
#include "leat/engine/read_sizes.h"
#include "leat/engine/read_text.h"
#include "leat/plan/order.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

struct PlanFlags {
  CatalogueFlags dataset;
  std::string simulate_file;
  std::uint64_t global_batch_size = 256;
  std::uint32_t nodes = 1;
  std::uint32_t ranks_per_node = 1;
  std::uint64_t epochs = 10;
  std::uint64_t seed = 0;
  std::string ram = "0";
  std::string disk = "0";
  std::string step_time = "100ms";
  std::string latency = "55ms";
  std::string bandwidth = "0";
  std::uint32_t max_in_flight = kDefaultInFlight;
  LedgerFlags billing;
  bool are_peers_in_zones = false;
  bool is_break_even = false;
  const CLI::App* of_a_dataset = nullptr;  // The command whose options those
                                           // are.
};

constexpr std::uint64_t kShardBytes = 128 * kMiB;
constexpr std::uint64_t kMostRanks = 1 << 20;
constexpr std::uint64_t kLookEvery = 16384;  // Samples, for a stop.
constexpr std::uint64_t kMostStepsAhead = 1 << 20;
constexpr std::uint64_t kMostBatch = 1 << 20;

/// The samples that node 0 of a DistributedSampler reads in each epoch; fewer
/// if `stop` fires.
std::vector<std::vector<SampleId>> dealt_in_turn(const NamedDeli& deli,
                                                 const std::stop_token& stop) {
  std::vector<std::vector<SampleId>> epochs(deli.epochs);
  for (std::uint64_t epoch = 0; epoch < deli.epochs; ++epoch) {
    const EpochOrder order(deli.samples, {.seed = deli.seed}, nullptr, epoch);
    epochs[epoch].reserve(deli.samples / deli.nodes + 1);
    for (std::uint64_t p = 0; p < deli.samples; p += deli.nodes) {
      if (p % kLookEvery < deli.nodes && stop.stop_requested()) return epochs;
      epochs[epoch].push_back(order.at(p));
    }
  }
  return epochs;
}

/// The break-evens of a file, whose simulations have run.
Json break_evens_of(const SimulationFile& file,
                    std::span<const SimulationReport> reports) {
  Json told = Json::array();
  for (const NamedBreakEven& run : file.break_even) {
    std::vector<Way> ways;
    for (const NamedWay& named : run.ways) {
      ways.push_back(named.way);
      if (named.simulation.empty()) continue;
      const auto found = std::ranges::find(file.simulations, named.simulation,
                                           &NamedSimulation::name);
      take_from(reports[found - file.simulations.begin()], found->options,
                ways.back());
    }
    told.push_back(break_even_json(run.name, ways, run.epochs, run.nodes,
                                   run.prices, run.billing));
  }
  return told;
}

Result<void> run_file(const PlanFlags& flags, CommandContext& context) {
  LEAT_TRY(const std::string text, read_text(flags.simulate_file, 1 << 20));
  LEAT_TRY(const SimulationFile file,
           parse_simulation_file(text, flags.simulate_file));
  ProgressLine line(context);
  const auto runs = static_cast<double>(file.simulations.size() +
                                        file.deli.size() + file.solar.size());
  double begun = 0;
  const auto begin = [&](const std::string& name) {
    line.show(
        fmt::format("simulating {}, {:.0f} of {:.0f}", name, ++begun, runs));
  };
  Json simulations = Json::array();
  Json rows = Json::array();
  std::vector<SimulationReport> reports;
  for (const NamedSimulation& simulation : file.simulations) {
    begin(simulation.name);
    Result<SimulationReport> report =
        simulate(simulation.options, context.stop);
    if (!report) return std::move(report).error().while_doing(simulation.name);
    simulations.push_back(simulation_json(simulation, *report));
    rows.push_back(simulations.back()["total"]);
    rows.back()["name"] = simulation.name;
    reports.push_back(*std::move(report));
  }
  Json deli = Json::array();
  for (const NamedDeli& run : file.deli) {
    begin(run.name);
    Result<std::vector<DeliEpoch>> epochs = simulate_deli(
        run.options, dealt_in_turn(run, context.stop), context.stop);
    if (!epochs) return std::move(epochs).error().while_doing(run.name);
    deli.push_back(deli_json(run, *epochs));
  }
  Json solar = Json::array();
  for (const NamedSolar& run : file.solar) {
    begin(run.name);
    Result<std::vector<SolarEpoch>> epochs =
        simulate_solar(run.options, nullptr, context.stop);
    if (!epochs) return std::move(epochs).error().while_doing(run.name);
    solar.push_back(solar_json(run, *epochs));
  }
  const Json break_even = break_evens_of(file, reports);
  line.clear();
  if (flags.dataset.is_json) {
    context.out << dump_json({{"simulations", simulations},
                              {"deli", deli},
                              {"solar", solar},
                              {"break_even", break_even}})
                << '\n';
    return {};
  }
  if (!rows.empty()) print_totals(rows, context.out);
  for (const Json& run : deli) {
    context.out << run["name"].get<std::string>();
    for (const Json& epoch : run["epochs"]) {
      context.out << fmt::format("  {:.1f} % missed, {:.1f} s",
                                 100 * epoch["miss_rate"].get<double>(),
                                 epoch["loading_seconds"].get<double>());
    }
    context.out << '\n';
  }
  for (const Json& run : solar) {
    context.out << run["name"].get<std::string>();
    for (const Json& epoch : run["epochs"]) {
      context.out << fmt::format("  {} loads",
                                 epoch["loads"].get<std::uint64_t>());
    }
    context.out << '\n';
  }
  for (const Json& run : break_even) print_break_even(run, context.out);
  return {};
}

Result<double> seconds_of(const std::string& text) {
  LEAT_TRY(const Nanoseconds parsed, parse_duration(text));
  return std::chrono::duration<double>(parsed).count();
}

/// A loader asks as far ahead as it takes to be in time: for as much as may be
/// in flight, and the step that comes.
std::uint32_t steps_ahead(const PlanFlags& flags) {
  const std::uint64_t in_flight =
      std::uint64_t{flags.max_in_flight} * flags.nodes;
  const std::uint64_t steps =
      (in_flight + flags.global_batch_size - 1) / flags.global_batch_size;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(steps + 1, kMostStepsAhead));
}

Result<SweepOptions> sweep_options(const PlanFlags& flags) {
  SweepOptions options;
  options.order.seed = flags.seed;
  options.global_batch = flags.global_batch_size;
  const std::uint64_t ranks = std::uint64_t{flags.nodes} * flags.ranks_per_node;
  if (ranks > kMostRanks) {
    return invalid(
        "--nodes {} times --ranks-per-node {} are {} ranks: at most {} are "
        "simulated",
        flags.nodes, flags.ranks_per_node, ranks, kMostRanks);
  }
  options.ranks = static_cast<std::uint32_t>(ranks);
  options.nodes = flags.nodes;
  options.epochs = flags.epochs;
  LEAT_TRY(options.ram_bytes, parse_bytes(flags.ram));
  LEAT_TRY(options.disk_bytes, parse_bytes(flags.disk));
  LEAT_TRY(options.times.compute_seconds, seconds_of(flags.step_time));
  LEAT_TRY(options.times.get_seconds, seconds_of(flags.latency));
  LEAT_TRY(const std::uint64_t bandwidth, parse_bytes(flags.bandwidth));
  options.times.bytes_per_second = static_cast<double>(bandwidth);
  options.times.max_in_flight = flags.max_in_flight;
  options.times.prefetch_steps = steps_ahead(flags);
  return options;
}

void print_plan(const Json& plan, std::ostream& out) {
  out << fmt::format("{}: {} samples, {}\n\n", plan["url"].get<std::string>(),
                     plan["samples"].get<std::uint64_t>(),
                     format_bytes(plan["bytes"].get<std::uint64_t>()));
  print_totals(plan["caches"], out);
  const std::string as_of = plan["prices_as_of"].get<std::string>();
  const auto limit = plan["provider_gets_per_second"].get<double>();
  out << fmt::format(
      "prices: {}, {}{}\n", plan["provider"].get<std::string>(),
      as_of.empty() ? "of a date that is not said" : "as of " + as_of,
      limit == 0 ? "" : fmt::format("; it promises {:.0f} GETs/s", limit));
  const Json& packing = plan["packing"];
  if (packing.is_null()) return;
  const auto gets = packing["gets_an_epoch"].get<std::uint64_t>();
  out << fmt::format(
      "\nPacked into shards: {} GET{} an epoch without a cache; costs {} "
      "dollars once, saves {} an epoch{}.\n",
      gets, gets == 1 ? "" : "s",
      format_dollars(packing["dollars_once"].get<double>()),
      format_dollars(packing["dollars_saved_an_epoch"].get<double>()),
      packing["epochs_to_pay"].is_null()
          ? ": it never pays"
          : fmt::format(", pays after {}",
                        packing["epochs_to_pay"].get<std::uint64_t>()));
}

Result<void> run_dataset(const PlanFlags& flags, CommandContext& context) {
  LEAT_TRY(SweepOptions options, sweep_options(flags));
  LEAT_TRY_VOID(flags.billing.pricing());  // Wrong ones before all else.
  LEAT_TRY(const OpenedStore store, open_store(flags.dataset, context));
  LEAT_TRY(const Pricing pricing,
           flags.billing.pricing(store.provider.value_or("")));
  const Prices& prices = pricing.prices;
  LEAT_TRY(const OpenedCatalogue opened, open_catalogue(store, {}, context));
  const Catalogue& catalogue = *opened.catalogue;
  read_as_usual(opened.catalogue, options);
  if (options.samples > 0 && options.samples < options.global_batch) {
    return invalid(
        "--global-batch-size {}: {} has {} samples, which fill no step; give a "
        "smaller one",
        options.global_batch, store.url, options.samples);
  }
  const Billing billing{.node_per_hour = flags.billing.node_per_hour,
                        .is_behind_nat = flags.billing.is_behind_nat,
                        .are_peers_in_zones = flags.are_peers_in_zones};
  ProgressLine line(context);
  line.show("simulating the caches");
  if (flags.is_break_even) {
    LEAT_TRY(
        Json told,
        break_even_of(options, static_cast<double>(catalogue.total_bytes()),
                      prices, billing, store.url, context.stop));
    line.clear();
    if (flags.dataset.is_json) {
      told["provider"] = pricing.provider;
      context.out << dump_json(told) << '\n';
    } else {
      print_break_even(told, context.out);
    }
    return {};
  }
  LEAT_TRY(const auto rows, sweep(options, context.stop));
  line.clear();
  Json caches = Json::array();
  for (const SweepRow& row : rows) {
    Json told = {{"name", row.name}, {"tiers", Json::array()}};
    for (const TierSpec& tier : row.options.tiers) {
      told["tiers"].push_back(
          {{"policy", tier.policy}, {"capacity", tier.capacity}});
    }
    const auto& peers = row.options.peer_memory;
    told["peer_memory"] = peers.has_value() ? peers->bytes : 0;
    told.update(totals_json(row.report, row.options, prices, billing));
    caches.push_back(std::move(told));
  }
  const Json plan = {
      {"url", store.url},
      {"samples", options.samples},
      {"bytes", catalogue.total_bytes()},
      {"layout", to_string(catalogue.layout())},
      {"provider", pricing.provider},
      {"provider_gets_per_second", prices.gets_per_second},
      {"prices_as_of", prices.as_of},
      {"caches", std::move(caches)},
      {"packing",
       catalogue.layout() == Layout::kShards
           ? Json(nullptr)  // It is packed.
           : packing_json(cost_of_packing(
                 options.samples, catalogue.total_bytes(), kShardBytes,
                 BlockMap::kDefaultPieceBytes, prices))}};
  if (flags.dataset.is_json) {
    context.out << dump_json(plan) << '\n';
  } else {
    print_plan(plan, context.out);
  }
  return {};
}

/// Whether its value is that of the environment, which holds for all commands:
/// nobody gave it to this one.
bool is_of_environment(const CLI::Option& option) {
  const std::string name = option.get_envname();
  const char* const value = name.empty() ? nullptr : std::getenv(name.c_str());
  return value != nullptr &&
         option.results() == std::vector<std::string>{value};
}

Result<void> run_plan(const PlanFlags& flags, CommandContext& context) {
  if (flags.dataset.url.empty() == flags.simulate_file.empty()) {
    return invalid(
        "plan takes a URL, or a file of jobs by --simulate FILE: give one of "
        "them");
  }
  if (flags.simulate_file.empty()) return run_dataset(flags, context);
  for (const CLI::Option* option : flags.of_a_dataset->get_options()) {
    if (option->count() == 0 || is_of_environment(*option)) continue;
    return invalid(
        "{} is of a dataset, and what --simulate runs is in its file: say it "
        "there, or give a URL",
        option->get_name());
  }
  return run_file(flags, context);
}

void add_job_flags(CLI::App& app, PlanFlags& flags) {
  const auto count = [&](const char* name, auto& value, std::uint64_t most,
                         const char* help, std::uint64_t least = 1) {
    app.add_option(name, value, help)
        ->transform(count_between(least, most))
        ->capture_default_str();
  };
  const auto text = [&](const char* name, std::string& value,
                        const CLI::Validator& check, const char* help) {
    app.add_option(name, value, help)->check(check)->capture_default_str();
  };
  count("--global-batch-size", flags.global_batch_size, kMostBatch,
        "samples a step over all ranks");
  count("--nodes", flags.nodes, kMostRanks, "how many machines train");
  count("--ranks-per-node", flags.ranks_per_node, kMostRanks,
        "processes on each machine");
  count("--epochs", flags.epochs, kMostEpochs, "how many");
  count("--max-in-flight", flags.max_in_flight, kMostInFlight,
        "requests in flight on a node");
  count("--seed", flags.seed, std::numeric_limits<std::uint64_t>::max(),
        "the seed of the order", 0);
  text("--ram", flags.ram, size_in_bytes(),
       "memory for the cache on each node: 8GiB");
  text("--disk", flags.disk, size_in_bytes(), "the same on disk");
  text("--step-time", flags.step_time, duration_in_units(),
       "the time of a training step's compute");
  text("--latency", flags.latency, duration_in_units(), "the latency of a GET");
  text("--bandwidth", flags.bandwidth, size_in_bytes(),
       "bytes a second that a node receives; 0: no limit");
}

std::function<Result<void>(CommandContext&)> add_plan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  app.add_option("URL", flags->dataset.url,
                 "s3://, gs://, az://, http(s)://, file:// or a path");
  app.add_option("--simulate", flags->simulate_file,
                 "run the jobs that a TOML file describes instead");
  CLI::App* const of_a_dataset = app.add_option_group("of a dataset");
  add_job_flags(*of_a_dataset, *flags);
  flags->billing.add_to(*of_a_dataset);
  of_a_dataset->add_flag("--peers-in-zones", flags->are_peers_in_zones,
                         "nodes are in different zones");
  of_a_dataset->add_flag("--break-even", flags->is_break_even,
                         "when bucket, cache or a copy on disk is cheapest");
  flags->dataset.store.add_to(*of_a_dataset);
  flags->of_a_dataset = of_a_dataset;
  app.add_flag("--json", flags->dataset.is_json, "print one JSON object");
  app.footer(
      "Example:\n"
      "  leat plan s3://bucket/train --nodes 4 --ram 8GiB --disk 200GiB "
      "--epochs 90");
  return [flags](CommandContext& context) { return run_plan(*flags, context); };
}

}  // namespace

const Command kPlanCommand{
    .name = "plan",
    .summary = "simulate the gain of a cache, a policy or more nodes",
    .add = &add_plan,
};

}  // namespace leat
