// Opens a loader: each value in turn, from the options to the threads.

#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "leat/agent/wire/unix_socket.h"
#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/engine/agent_link.h"
#include "leat/engine/loader/machine.h"
#include "leat/store/url.h"

namespace leat {
namespace {

/// Identifies the data in a state; a stream has it before its catalogue.
Hash128 digest_of(const Job& job, const Catalogue* catalogue,
                  const std::optional<UnindexedShards>& shards) {
  if (shards) return listing_digest(shards->objects);
  return job.order.shuffle == Shuffle::kStream ? listing_digest(*catalogue)
                                               : catalogue->digest();
}

std::uint64_t bytes_of(const Catalogue* catalogue,
                       const std::optional<UnindexedShards>& shards) {
  std::uint64_t bytes = 0;
  if (shards) {
    for (const ObjectInfo& shard : shards->objects.data) {
      bytes += shard.size_bytes;
    }
    return bytes;
  }
  for (std::uint64_t i = 0; i < catalogue->objects(); ++i) {
    const auto object = ObjectIndex{static_cast<std::uint32_t>(i)};
    bytes += catalogue->object(object).size_bytes;
  }
  return bytes;
}

std::string word_of(Tail tail) {
  switch (tail) {
    case Tail::kDrop:
      return "drop";
    case Tail::kKeep:
      return "keep";
    case Tail::kPad:
      return "pad";
  }
  return "";
}

std::string own_command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line(4096, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  return line;
}

/// The buckets of all parts, each once.
std::vector<std::string> buckets_of(const Dataset& dataset) {
  std::vector<std::string> buckets;
  const auto add = [&](std::string_view place) {
    const Result<Url> url = parse_url(place);
    std::string bucket = url ? url->bucket() : "";
    if (!bucket.empty() &&
        std::ranges::find(buckets, bucket) == buckets.end()) {
      buckets.push_back(std::move(bucket));
    }
  };
  if (dataset.parts.empty()) add(dataset.url);
  for (const StorePlace& part : dataset.parts) add(part.url);
  return buckets;
}

/// JobLoader::ordinal of a loader that is opened now.
std::uint64_t next_ordinal(const std::string& dataset, Rank process) {
  static Mutex mutex;
  static auto& opened =
      *new std::map<std::pair<std::string, Rank>, std::uint64_t>;
  const MutexLock lock(mutex);
  return opened[{dataset, process}]++;
}

}  // namespace

Result<void> Loader::Machine::open(LoaderSource source, LoaderOptions options,
                                   const Env& env) {
  Dataset dataset;
  std::optional<UnindexedShards> shards;
  if (auto* known = std::get_if<Dataset>(&source)) {
    dataset = std::move(*known);
  } else {
    shards = std::move(std::get<UnindexedShards>(source));
    dataset.url = shards->url;
    dataset.store_options = shards->store_options;
    dataset.opening = shards->opening;
  }
  job.options = std::move(options);
  schedule = std::make_unique<Schedule>(job, std::move(dataset));
  const Catalogue* const catalogue = schedule->catalogue();
  settle_order(job, catalogue);
  LEAT_TRY_VOID(settle_rank(job, env));
  LEAT_TRY(const std::uint64_t batch, global_batch_of(job.options, job.rank));
  schedule->set_global_batch(batch);
  LEAT_TRY_VOID(settle_mix(job, catalogue, batch));
  if (catalogue != nullptr) LEAT_TRY_VOID(schedule->check_world_size());
  LEAT_TRY_VOID(settle_tail(job));
  LEAT_TRY_VOID(schedule->check_steps(job.first_epoch(), 0));
  LEAT_TRY_VOID(check_locality(job));
  LEAT_TRY_VOID(check_drawn(job, schedule->dataset()));
  LEAT_TRY_VOID(check_first_within(job, catalogue));
  LEAT_TRY_VOID(check_fetch_ahead(job, catalogue));
  job.data_digest = digest_of(job, catalogue, shards).hex();
  if (job.options.cache || job.options.tune.is_on) {
    job.data_bytes = bytes_of(catalogue, shards);
  }
  if (catalogue != nullptr) LEAT_TRY_VOID(schedule->open_fields());
  return open_values(std::move(shards), env);
}

Result<void> Loader::Machine::open_values(std::optional<UnindexedShards> shards,
                                          const Env& env) {
  const Limits limits = effective_limits();
  LEAT_TRY(Allowance allowance,
           settle_limits(job, limits, schedule->catalogue()));
  const RankLimits mine = allowance.usual();
  LEAT_TRY_VOID(opened.open_stores(job, *schedule, shards ? &*shards : nullptr,
                                   mine, *allowance.most().in_flight, limits,
                                   env));
  allowance.add_tiers(opened.tiers.ram_bytes, opened.tiers.disk_bytes);
  opened.open_memory(job, mine, allowance.most_threads());
  opened.open_quarantine(job, *schedule, env);
  LEAT_TRY(costs, LoaderCosts::open(env, opened.store.provider,
                                    mine.local_ranks, *opened.metrics));
  control = std::make_unique<Control>(std::move(allowance), opened_at);
  form = std::make_unique<CacheFormChoice>(job, opened, *control, opened_at);
  if (schedule->catalogue() != nullptr) {
    LEAT_TRY_VOID(form->open(schedule->fields(), *schedule));
  }
  LEAT_TRY_VOID(schedule->plan_dealing());
  account = std::make_unique<Account>(
      AccountOptions{.is_first_rank = job.process.rank == 0,
                     .tells_verdict = job.options.tells_verdict,
                     .has_hashes = job.options.hashes},
      *opened.metrics);
  if (!job.options.trace.empty()) {
    LEAT_TRY_VOID(account->open_trace(job.file_of_process(job.options.trace),
                                      job.process.rank));
  }
  {
    const MutexLock lock(mutex);
    position.epoch = job.first_epoch();
  }
  LEAT_TRY_VOID(open_order_log());
  LEAT_TRY_VOID(open_runs(std::move(shards), env));
  tell_shares(job, mine);
  return begin_tuning(env);
}

Result<void> Loader::Machine::open_runs(std::optional<UnindexedShards> shards,
                                        const Env& env) {
  if (shards) {
    LEAT_TRY(parts, StreamParts::open(job, opened, *form, *std::move(shards),
                                      opened.budget->capacity_bytes(), env));
  }
  const MutexLock lock(mutex);
  runs =
      std::make_unique<Runs>(job, *schedule, opened, *form, *control, *account);
  if (parts != nullptr) {
    runs->begin_in_parts(*parts);
  } else {
    runs->begin_whole();
  }
  return {};
}

Result<void> Loader::Machine::open_order_log() {
  if (job.options.order_log.empty()) return {};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  LEAT_TRY(order_log,
           OrderLogWriter::open(
               job.file_of_rank(job.options.order_log),
               {.rank = job.rank,
                .data = job.data_digest,
                .shuffle = std::string(word_of(job.order.shuffle)),
                .shuffle_window = job.order.window_blocks,
                .seed = job.order.seed,
                .global_batch = schedule->global_batch(),
                .tail = word_of(job.tail),
                .samples = schedule->samples().value_or(0),
                .opened_at = static_cast<std::uint64_t>(
                    std::chrono::duration_cast<Nanoseconds>(now).count())}));
  return {};
}

Result<void> Loader::Machine::begin_tuning(const Env& env) {
  const TuneOptions& tune = job.options.tune;
  const std::optional<std::string> told = value_of(env, "LEAT_TUNE");
  if (told && *told != "on" && *told != "off") {
    return invalid("LEAT_TUNE=" + *told + "; it is on or off");
  }
  if (!tune.is_on || told == "off") return {};
  const RankLimits usual = control->usual();
  const auto choose = [this](const Settings& settings) {
    control->choose(settings);
    apply_settings();
  };
  choose(
      {.threads = tune.start_threads != 0 ? tune.start_threads : usual.threads,
       .in_flight =
           tune.start_in_flight != 0 ? tune.start_in_flight : usual.in_flight});
  return control->begin_tuning(
      {.observe = [this] { return observe(); }, .apply = choose},
      tune.trace.empty() ? "" : job.file_of_process(tune.trace));
}

void Loader::Machine::join_agent(const Env& env) {
  std::vector<std::string> paths = agent_paths(env);
  if (paths.empty()) return;
  const Share most = control->most();
  const Dataset dataset = [this] {
    const MutexLock lock(mutex);
    return schedule->dataset();
  }();
  const JobLoader one{.dataset = dataset.url,
                      .world_size = job.process.world_size,
                      .ordinal = next_ordinal(dataset.url, job.process)};
  WireRegistration who{.job = job_key(env, one),
                       .name = job_name(env, own_command_line()),
                       .dataset = dataset.url,
                       .rank = job.process.rank,
                       .world_size = job.process.world_size,
                       .local_ranks = job.local.world_size,
                       .threads = *most.threads,
                       .in_flight = *most.in_flight,
                       .ram_bytes = most.ram_bytes.value_or(0),
                       .disk_bytes = most.disk_bytes.value_or(0),
                       // Unknown for shards that have yet to be indexed.
                       .dataset_samples = dataset.catalogue == nullptr
                                              ? 0
                                              : dataset.catalogue->samples(),
                       .epochs = job.options.epochs.value_or(0),
                       .shared_cache = opened.shared_cache,
                       .buckets = buckets_of(dataset)};
  control->join_agent({.paths = std::move(paths),
                       .registration = std::move(who),
                       .totals = [this] { return totals(); },
                       .metrics = [this]() -> const Metrics& {
                         costs->price_metrics();
                         return *opened.metrics;
                       },
                       .set_share =
                           [this](const Share& given) {
                             control->allow(given);
                             apply_settings();
                           },
                       .set_pace = nullptr,
                       .elsewhere = nullptr,
                       .trace = [this] { return account->recent_steps(); }});
}

}  // namespace leat
