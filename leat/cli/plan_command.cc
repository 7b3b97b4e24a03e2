// leat plan URL    What a cache, a policy or more nodes would buy: a
// simulation, before anyone pays.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "leat/base/units.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/plan_report.h"
#include "leat/cli/prices.h"
#include "leat/cli/read_text.h"
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
  std::uint32_t max_in_flight = 64;
  std::string provider = "s3";
  double node_per_hour = 0;
  bool is_behind_nat = false;
  bool are_peers_in_zones = false;
};

constexpr std::uint64_t kShardBytes = 128 * kMiB;

/// What node 0 of a DistributedSampler reads in each epoch.
std::vector<std::vector<SampleId>> dealt_in_turn(const NamedDeli& deli) {
  std::vector<std::vector<SampleId>> epochs(deli.epochs);
  for (std::uint64_t epoch = 0; epoch < deli.epochs; ++epoch) {
    const EpochOrder order(deli.samples, {.seed = deli.seed}, nullptr, epoch);
    epochs[epoch].reserve(deli.samples / deli.nodes + 1);
    for (std::uint64_t p = 0; p < deli.samples; p += deli.nodes) {
      epochs[epoch].push_back(order.at(p));
    }
  }
  return epochs;
}

Result<void> run_file(const PlanFlags& flags, CommandContext& context) {
  LEAT_TRY(const std::string text, read_text(flags.simulate_file, 1 << 20));
  LEAT_TRY(const SimulationFile file,
           parse_simulation_file(text, flags.simulate_file));
  Json simulations = Json::array();
  Json rows = Json::array();
  for (const NamedSimulation& simulation : file.simulations) {
    Result<SimulationReport> report =
        simulate(simulation.options, context.stop);
    if (!report) return std::move(report).error().while_doing(simulation.name);
    simulations.push_back(simulation_json(simulation, *report));
    rows.push_back(simulations.back()["total"]);
    rows.back()["name"] = simulation.name;
  }
  Json deli = Json::array();
  for (const NamedDeli& run : file.deli) {
    if (context.stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "the simulation was stopped");
    }
    LEAT_TRY(const auto epochs, simulate_deli(run.options, dealt_in_turn(run)));
    deli.push_back(deli_json(run, epochs));
  }
  Json solar = Json::array();
  for (const NamedSolar& run : file.solar) {
    if (context.stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "the simulation was stopped");
    }
    Result<std::vector<SolarEpoch>> epochs =
        simulate_solar(run.options, nullptr);
    if (!epochs) return std::move(epochs).error().while_doing(run.name);
    solar.push_back(solar_json(run, *epochs));
  }
  if (flags.dataset.is_json) {
    context.out << dump_json({{"simulations", simulations},
                              {"deli", deli},
                              {"solar", solar}})
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
  return {};
}

Result<double> seconds_of(const std::string& text, const char* flag) {
  Result<Nanoseconds> parsed = parse_duration(text);
  if (!parsed) return std::move(parsed).error().while_doing(flag);
  return std::chrono::duration<double>(*parsed).count();
}

Result<std::uint64_t> bytes_of(const std::string& text, const char* flag) {
  Result<std::uint64_t> parsed = parse_bytes(text);
  if (!parsed) return std::move(parsed).error().while_doing(flag);
  return *parsed;
}

Result<SweepOptions> sweep_options(const PlanFlags& flags) {
  SweepOptions options;
  options.seed = flags.seed;
  options.global_batch = flags.global_batch_size;
  options.ranks = flags.nodes * flags.ranks_per_node;
  options.nodes = flags.nodes;
  options.epochs = flags.epochs;
  LEAT_TRY(options.ram_bytes, bytes_of(flags.ram, "--ram"));
  LEAT_TRY(options.disk_bytes, bytes_of(flags.disk, "--disk"));
  LEAT_TRY(options.times.compute_seconds,
           seconds_of(flags.step_time, "--step-time"));
  LEAT_TRY(options.times.get_seconds, seconds_of(flags.latency, "--latency"));
  LEAT_TRY(const std::uint64_t bandwidth,
           bytes_of(flags.bandwidth, "--bandwidth"));
  options.times.bytes_per_second = static_cast<double>(bandwidth);
  options.times.max_in_flight = flags.max_in_flight;
  return options;
}

void print_plan(const Json& plan, std::ostream& out) {
  out << fmt::format("{}: {} samples, {}\n\n", plan["url"].get<std::string>(),
                     plan["samples"].get<std::uint64_t>(),
                     format_bytes(plan["bytes"].get<std::uint64_t>()));
  print_totals(plan["caches"], out);
  const Json& packing = plan["packing"];
  out << fmt::format(
      "\nPacked into shards: {} GETs an epoch without a cache; costs {:.2f} "
      "dollars once, saves {:.2f} an epoch{}.\n",
      packing["gets_an_epoch"].get<std::uint64_t>(),
      packing["dollars_once"].get<double>(),
      packing["dollars_saved_an_epoch"].get<double>(),
      packing["epochs_to_pay"].is_null()
          ? ": it never pays"
          : fmt::format(", pays after {}",
                        packing["epochs_to_pay"].get<std::uint64_t>()));
}

Result<void> run_dataset(const PlanFlags& flags, CommandContext& context) {
  LEAT_TRY(SweepOptions options, sweep_options(flags));
  LEAT_TRY(const Prices prices, prices_of(flags.provider));
  LEAT_TRY(const OpenedStore store, open_store(flags.dataset, context));
  LEAT_TRY(const OpenedCatalogue opened, open_catalogue(store, {}, context));
  options.samples = opened.catalogue->samples();
  options.total_bytes = opened.catalogue->total_bytes();
  LEAT_TRY(const auto rows, sweep(options, context.stop));
  const Billing billing{.node_per_hour = flags.node_per_hour,
                        .is_behind_nat = flags.is_behind_nat,
                        .are_peers_in_zones = flags.are_peers_in_zones};
  Json caches = Json::array();
  for (const SweepRow& row : rows) {
    Json told = {{"name", row.name}, {"tiers", Json::array()}};
    for (const TierSpec& tier : row.options.tiers) {
      told["tiers"].push_back(
          {{"policy", tier.policy}, {"capacity", tier.capacity}});
    }
    told.update(totals_json(row.report, row.options, prices, billing));
    caches.push_back(std::move(told));
  }
  const Json plan = {
      {"url", store.url},
      {"samples", options.samples},
      {"bytes", options.total_bytes},
      {"provider", flags.provider},
      {"provider_gets_per_second", prices.gets_per_second},
      {"caches", std::move(caches)},
      {"packing", packing_json(cost_of_packing(
                      options.samples, options.total_bytes, kShardBytes,
                      BlockMap::kDefaultPieceBytes, prices))}};
  if (flags.dataset.is_json) {
    context.out << dump_json(plan) << '\n';
  } else {
    print_plan(plan, context.out);
  }
  return {};
}

Result<void> run_plan(const PlanFlags& flags, CommandContext& context) {
  if (flags.dataset.url.empty() == flags.simulate_file.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "plan takes a URL, or a file of jobs by --simulate FILE: give "
                 "one of them");
  }
  return flags.simulate_file.empty() ? run_dataset(flags, context)
                                     : run_file(flags, context);
}

void add_job_flags(CLI::App& app, PlanFlags& flags) {
  const auto count = [&](const char* name, auto& value, const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
  };
  const auto text = [&](const char* name, std::string& value,
                        const char* help) {
    app.add_option(name, value, help)->capture_default_str();
  };
  count("--global-batch-size", flags.global_batch_size, "of all ranks");
  count("--nodes", flags.nodes, "how many machines train");
  count("--ranks-per-node", flags.ranks_per_node, "processes on each");
  count("--epochs", flags.epochs, "how many");
  count("--max-in-flight", flags.max_in_flight, "requests of a rank at once");
  app.add_option("--seed", flags.seed, "of the order");
  text("--ram", flags.ram, "for the cache, of each node: 8GiB");
  text("--disk", flags.disk, "the same on disk");
  text("--step-time", flags.step_time, "what a training step computes");
  text("--latency", flags.latency, "of a GET");
  text("--bandwidth", flags.bandwidth,
       "bytes a second that a node receives; 0: no limit");
}

std::function<Result<void>(CommandContext&)> add_plan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  app.add_option("URL", flags->dataset.url,
                 "s3://, http(s)://, file:// or a path");
  app.add_option("--simulate", flags->simulate_file,
                 "run the jobs that a TOML file describes instead");
  add_job_flags(app, *flags);
  app.add_option("--provider", flags->provider, "whose prices: s3, gcs")
      ->capture_default_str();
  app.add_option("--node-per-hour", flags->node_per_hour,
                 "dollars that a machine costs")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--nat", flags->is_behind_nat, "GETs pass a NAT gateway");
  app.add_flag("--peers-in-zones", flags->are_peers_in_zones,
               "nodes are in different zones");
  flags->dataset.store.add_to(app);
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
    .summary = "simulate what a cache, a policy or more nodes would buy",
    .add = &add_plan,
};

}  // namespace leat
