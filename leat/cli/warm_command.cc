// leat warm URL    Fetches a dataset into a cache folder before training.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>

#include "leat/base/units.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/loader_flags.h"
#include "leat/cli/number_checks.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/loader/loader.h"

namespace leat {
namespace {

struct WarmFlags {
  std::string url;
  std::string fields;
  std::string cache_disk;
  std::string cache_disk_limit;
  std::size_t max_in_flight = 0;
  StoreFlags store;
  bool is_json = false;
};

/// The counts of a pass over the dataset.
struct Pass {
  std::uint64_t samples = 0;
  std::uint64_t found = 0;    ///< Reads that the folder answered.
  std::uint64_t fetched = 0;  ///< Reads that went to the store.
  std::uint64_t written = 0;  ///< The part that the folder took.
  std::uint64_t refused = 0;  ///< The part that it was to take, and did not.

  std::uint64_t reads() const { return found + fetched; }
  std::uint64_t kept() const { return std::min(found + written, reads()); }
};

/// Samples count once their batch is whole; bytes move before that.
void show_reading(const Loader& loader, std::uint64_t samples,
                  std::uint64_t all, ProgressLine& line) {
  const std::int64_t bytes = loader.metrics()->value(Metric::kStoreReadBytes);
  const std::string unit = fmt::format(
      "samples, {} fetched", format_bytes(static_cast<std::uint64_t>(bytes)));
  line.show({.what = "reading",
             .done = static_cast<double>(samples),
             .all = static_cast<double>(all),
             .unit = unit});
}

Result<Pass> run_pass(Loader& loader, std::uint64_t all, ProgressLine& line,
                      CommandContext& context) {
  Pass pass;
  const auto count = [&](Metric metric) {
    return static_cast<std::uint64_t>(loader.metrics()->value(metric));
  };
  const std::uint64_t refused_before = count(Metric::kCacheRefusals);
  const std::uint64_t written_before = count(Metric::kCacheInserts);
  LEAT_TRY(const Loader::Iteration epoch, loader.begin());
  while (true) {
    LEAT_TRY(Loader::Next next,
             loader.next_within(epoch, std::chrono::milliseconds(50)));
    if (context.stop.stop_requested()) {
      line.show("writing what was fetched");
      loader.settle_cache();
      return Error(
          ErrorCode::kCancelled,
          fmt::format("warm was stopped after {} of {} samples; the {} reads "
                      "that it has written stay, and are not fetched again",
                      pass.samples, all,
                      count(Metric::kCacheInserts) - written_before));
    }
    show_reading(loader, pass.samples, all, line);
    if (next.is_not_yet()) continue;
    if (next.is_end()) break;
    pass.samples += next.batch().ids.size();
  }
  line.show("writing what was fetched");
  loader.settle_cache();
  const EpochStats stats = loader.stats().back();
  pass.found = stats.disk_hits + stats.ram_hits;
  pass.fetched = stats.misses;
  pass.written = count(Metric::kCacheInserts) - written_before;
  pass.refused = count(Metric::kCacheRefusals) - refused_before;
  return pass;
}

Result<LoaderOptions> options_of(const WarmFlags& flags) {
  LoaderOptions options;
  options.batch_size = 64;
  options.shuffle = ShuffleChoice::kNone;
  options.drop_last = false;
  options.epochs = 1;  // Or the next one would be read ahead.
  options.hashes = false;
  options.tells_verdict = false;  // It is to wait for the store.
  options.rank = Rank{};
  options.max_in_flight = flags.max_in_flight;
  std::istringstream names(flags.fields);
  for (std::string name; std::getline(names, name, ',');) {
    options.fields.push_back(name);
  }
  options.cache.emplace();
  options.cache->disk = flags.cache_disk;
  if (!flags.cache_disk_limit.empty()) {
    LEAT_TRY(options.cache->disk_limit_bytes,
             parse_bytes(flags.cache_disk_limit));
  }
  return options;
}

Result<void> run_warm(const WarmFlags& flags, CommandContext& context) {
  LEAT_TRY(LoaderOptions options, options_of(flags));
  ProgressLine line(context);
  CatalogueOptions catalogue;
  catalogue.index.progress = shown_on(line);
  LEAT_TRY(Dataset dataset, open_dataset(flags.url, flags.store.store_options(),
                                         catalogue, context.env, context.stop));
  const std::uint64_t all = dataset.catalogue->samples();
  options.batch_size = std::min(options.batch_size, all);
  LEAT_TRY(const std::unique_ptr<Loader> loader,
           Loader::open(std::move(dataset), options, context.env));
  LEAT_TRY(Pass pass, run_pass(*loader, all, line, context));
  std::uint64_t fetched = pass.fetched;
  // Some records came faster than the disk could write, or while records of
  // earlier runs were in their place. Fetch those once more, as long as that
  // helps.
  for (std::optional<std::uint64_t> before;
       pass.refused != 0 && (!before || pass.kept() > *before);) {
    before = pass.kept();
    LEAT_TRY(pass, run_pass(*loader, all, line, context));
    fetched += pass.fetched;
  }
  const std::uint64_t not_kept = pass.reads() - pass.kept();
  line.clear();
  if (flags.is_json) {
    context.out << nlohmann::ordered_json{{"samples", all},
                                          {"fetched", fetched},
                                          {"kept", pass.kept()},
                                          {"not_kept", not_kept}}
                       .dump()
                << '\n';
    return {};
  }
  context.out << fmt::format("{} samples: {} reads are in {}", all, pass.kept(),
                             flags.cache_disk);
  if (not_kept != 0) {
    // The folder does not even try what has no version.
    const bool is_tried = pass.kept() != 0 || pass.refused != 0;
    context.out << fmt::format(
        ", {} are not: {}", not_kept,
        is_tried ? "raise --cache-disk-limit, or look at the disk"
                 : "the store names no versions (ETags) of its objects, and a "
                   "folder keeps no bytes that it could not tell from newer "
                   "ones");
  }
  context.out << '\n';
  return {};
}

std::function<Result<void>(CommandContext&)> add_warm(CLI::App& app) {
  auto flags = std::make_shared<WarmFlags>();
  app.add_option("URL", flags->url, "s3://bucket/prefix, http(s)://…, a path")
      ->required();
  app.add_option("--cache-disk", flags->cache_disk,
                 "the folder, as leat.Cache(disk=) will be given it")
      ->required();
  app.add_option("--cache-disk-limit", flags->cache_disk_limit,
                 "bytes in it; default: half of what is free")
      ->check(size_in_bytes());
  app.add_option("--fields", flags->fields,
                 "those that training reads; default: all");
  app.add_option("--max-in-flight", flags->max_in_flight,
                 "requests in flight; default: 128")
      ->transform(count_between(1, kMostInFlight));
  flags->store.add_to(app);
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Shards are kept in the pieces that one rank reads.\n"
      "Example:\n  leat warm s3://bucket/train --cache-disk /nvme/leat");
  return [flags](CommandContext& context) { return run_warm(*flags, context); };
}

}  // namespace

const Command kWarmCommand{
    .name = "warm",
    .summary = "fetch a dataset into a cache folder before training",
    .add = &add_warm,
};

}  // namespace leat
