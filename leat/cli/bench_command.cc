// leat bench URL    Runs the loader with an emulated training step and says how
// fast it was and where the time went.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/emulated_step.h"
#include "leat/cli/ledger.h"
#include "leat/cli/loader_flags.h"
#include "leat/cli/number_checks.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/caches.h"
#include "leat/engine/loader/loader.h"
#include "leat/runtime/accelerator_energy.h"
#include "leat/runtime/energy.h"
#include "leat/runtime/launcher.h"

namespace leat {
namespace {

struct BenchFlags {
  std::string url;
  LoaderFlags loader;
  StoreFlags store;
  RefreshFlag refresh;
  LedgerFlags ledger;
  std::uint64_t epochs = 2;
  std::string step_time = "0";
  bool is_json = false;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Does not use getrusage(), whose peak begins with the memory that the parent
/// had when it forked.
std::uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * kKiB;
  }
  return 0;
}

Result<void> run_epoch(Loader& loader, std::string_view name,
                       Nanoseconds step_time, ProgressLine& line,
                       const std::stop_token& stop) {
  LEAT_TRY(const Loader::Iteration epoch, loader.begin());
  const auto all = static_cast<double>(loader.length().value_or(0));
  double batches = 0;
  while (true) {
    LEAT_TRY(Loader::Next next,
             loader.next_within(epoch, std::chrono::milliseconds(50)));
    if (stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "bench was interrupted");
    }
    line.show({.what = name, .done = batches, .all = all, .unit = "batches"});
    if (next.is_not_yet()) continue;
    if (next.is_end()) return {};
    ++batches;
    if (step_time.count() > 0) emulate_step(step_time, stop);
  }
}

nlohmann::ordered_json settings_json(const BenchFlags& flags,
                                     const Loader& loader) {
  const LoaderFlags& given = flags.loader;
  return {{"global_batch_size", loader.options().global_batch_size},
          {"batch_size", loader.options().batch_size},
          {"shuffle", given.shuffle},
          {"shuffle_window",
           nlohmann::json::parse(loader.state())["shuffle_window"]},
          {"locality", given.locality},
          {"seed", given.seed},
          {"ops", given.ops},
          {"fields", given.fields},
          {"memory", format_bytes(*loader.options().memory_bytes)},
          {"threads", loader.options().threads},
          {"max_in_flight", loader.options().max_in_flight},
          {"fetch_size", given.fetch_size},
          {"queue_threshold", given.queue_threshold},
          {"cache", loader.options().cache ? describe(*loader.options().cache)
                                           : std::string("none")},
          {"rank", loader.rank().rank},
          {"world_size", loader.rank().world_size},
          {"step_time", flags.step_time}};
}

/// The ledger of this rank: the requests of opening and training.
Result<nlohmann::ordered_json> ledger_of(
    const BenchFlags& flags, const Loader& loader, EnergyMeter& processors,
    const AcceleratorEnergyMeter& accelerators, const RunTime& time,
    const Env& env) {
  LEAT_TRY(const Launch launch, read_launch(env));
  LEAT_TRY(const Pricing pricing,
           flags.ledger.pricing(loader.provider().value_or("")));
  LedgerCounts counts = counts_of(*loader.metrics(), launch.local.world_size);
  counts.processor_joules = processors.joules();
  counts.accelerator_joules = accelerators.joules();
  time.fill(counts);
  return nlohmann::ordered_json::parse(to_json(counts, pricing));
}

void print_table(std::ostream& out, const nlohmann::ordered_json& report) {
  out << fmt::format("{:>5} {:>12} {:>8} {:>12} {:>9}  {}\n", "epoch",
                     "samples/s", "wait", "first batch", "GETs",
                     "where the wait went");
  for (const auto& epoch : report["epochs"]) {
    std::string causes;
    const double wait = epoch["wait_seconds"].get<double>();
    for (const auto& [cause, seconds] : epoch["stalls"].items()) {
      const double share = wait > 0 ? seconds.get<double>() / wait : 0;
      if (share >= 0.01)
        causes += fmt::format("{} {:.0f} % ", cause, 100 * share);
    }
    out << fmt::format("{:>5} {:>12.1f} {:>7.1f}% {:>10.3f} s {:>9}  {}\n",
                       epoch["epoch"].get<std::uint64_t>(),
                       epoch["samples_per_second"].get<double>(),
                       100 * epoch["wait_fraction"].get<double>(),
                       epoch["first_batch_seconds"].get<double>(),
                       epoch["requests"]["get"].get<std::uint64_t>(), causes);
  }
}

Result<void> run_bench(const BenchFlags& flags, CommandContext& context) {
  LEAT_TRY_VOID(flags.ledger.pricing());
  LEAT_TRY(const Nanoseconds step_time, parse_duration(flags.step_time));
  LEAT_TRY(LoaderOptions options, flags.loader.loader_options());
  options.epochs = flags.epochs;
  LEAT_TRY(CatalogueOptions catalogue, flags.refresh.catalogue_options());
  ProgressLine line(context);
  catalogue.index.progress = shown_on(line);
  EnergyMeter processors;
  const AcceleratorEnergyMeter accelerators;
  const RunTime time;
  LEAT_TRY(LoaderSource source,
           open_for_loader(flags.url, flags.store.store_options(), catalogue,
                           options, context.env, context.stop));
  LEAT_TRY_VOID(check_objects_are_samples(source, flags.url));
  LEAT_TRY(const std::unique_ptr<Loader> loader,
           Loader::open(std::move(source), options, context.env));
  nlohmann::ordered_json report = {{"url", loader->dataset().url},
                                   {"samples", 0},
                                   {"settings", settings_json(flags, *loader)},
                                   {"epochs", nlohmann::json::array()}};
  for (std::uint64_t i = 0; i < flags.epochs; ++i) {
    const double cpu_before = cpu_seconds();
    LEAT_TRY_VOID(run_epoch(*loader,
                            fmt::format("epoch {} of {}", i + 1, flags.epochs),
                            step_time, line, context.stop));
    const EpochStats stats = loader->stats().back();
    auto epoch =
        nlohmann::ordered_json::parse(to_json(stats, loader->options().hashes));
    epoch["cpu_seconds"] = cpu_seconds() - cpu_before;
    epoch["peak_rss_bytes"] = peak_rss_bytes();
    report["epochs"].push_back(std::move(epoch));
  }
  // A stream's counts were unknown before.
  if (const Dataset dataset = loader->dataset(); dataset.catalogue != nullptr) {
    report["samples"] = dataset.catalogue->samples();
  }
  LEAT_TRY(report["ledger"], ledger_of(flags, *loader, processors, accelerators,
                                       time, context.env));
  line.clear();
  if (flags.is_json) {
    context.out << dump_json(report) << '\n';
  } else {
    print_table(context.out, report);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  app.add_option("URL", flags->url, "s3://bucket/prefix, http(s)://…, a path")
      ->required();
  app.add_option("--epochs", flags->epochs, "how many")
      ->transform(count_between(1, kMostEpochs))
      ->capture_default_str();
  app.add_option("--step-time", flags->step_time,
                 "how long each emulated training step takes")
      ->check(duration_in_units())
      ->capture_default_str();
  flags->loader.add_to(app);
  flags->store.add_to(app);
  flags->refresh.add_to(app);
  flags->ledger.add_to(app);
  flags->ledger.add_energy_to(app);
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Example:\n"
      "  leat bench s3://bucket/train --ops "
      "decode_image,random_resized_crop:224 \\\n"
      "    --global-batch-size 256 --step-time 200ms");
  return
      [flags](CommandContext& context) { return run_bench(*flags, context); };
}

}  // namespace

const Command kBenchCommand{
    .name = "bench",
    .summary = "run the loader and report its speed and its waits",
    .add = &add_bench,
};

}  // namespace leat
