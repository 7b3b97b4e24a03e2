// A loader's totals, and the part of its node that it may use from now on.
#include "leat/engine/loader_rates.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "leat/agent/wire/unix_socket.h"
#include "leat/engine/loader_machine.h"
#include "leat/pipeline/user_function.h"
#include "leat/runtime/log.h"
#include "leat/store/url.h"

namespace leat {
namespace {

std::uint64_t count_of(const Metrics& metrics, Metric which) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, metrics.value(which)));
}

std::string own_command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string line(4096, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  return line;
}

/// Changes of the cache's share that are kept to be read.
constexpr std::size_t kKeptShares = 1000;

std::size_t allowed_of(std::optional<std::size_t> share, std::size_t otherwise,
                       std::size_t most) {
  return share ? std::clamp<std::size_t>(*share, 1, most) : otherwise;
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

}  // namespace

void Loader::Machine::add_counts(LoaderRates& rates) const {
  const Metrics& m = *metrics;
  rates.batches = count_of(m, Metric::kPipelineBatches);
  // Counted when they are over, as their time and bytes are. In this order, so
  // that reads that are sent meanwhile only reduce the count.
  const std::uint64_t sent = count_of(m, Metric::kStoreReads);
  rates.reads = sent - std::min(sent, count_of(m, Metric::kStoreInFlight));
  rates.retried = count_of(m, Metric::kStoreRetries);
  rates.read_time = Nanoseconds(m.value(Metric::kStoreReadNanoseconds));
  rates.read_wait = Nanoseconds(m.value(Metric::kStoreWaitNanoseconds));
  rates.ram_hits = count_of(m, Metric::kCacheRamHits);
  rates.disk_hits = count_of(m, Metric::kCacheDiskHits);
  rates.peer_hits = count_of(m, Metric::kCachePeerHits);
  rates.ram_bytes = count_of(m, Metric::kCacheRamBytes);
  rates.disk_bytes = count_of(m, Metric::kCacheDiskBytes);
  rates.ram_allowed_bytes = count_of(m, Metric::kCacheRamAllowedBytes);
  rates.disk_allowed_bytes = count_of(m, Metric::kCacheDiskAllowedBytes);
  rates.cache_misses = count_of(m, Metric::kCacheMisses);
  rates.reserved_bytes = count_of(m, Metric::kRuntimeReservedBytes);
}

/// Samples of `decoded` are as long, and take as long, as those that were made
/// so far. Fields that are kept as bytes beside decoded ones are left out.
void Loader::Machine::add_form(LoaderRates& rates) const {
  const double records =
      static_cast<double>(count_of(*metrics, Metric::kPipelineRecords));
  if (decoded == nullptr || records == 0 || !form_samples) return;
  if (decoded->share() == 0) return;
  const auto mean = [&](Metric sum) {
    return static_cast<double>(count_of(*metrics, sum)) / records;
  };
  const double part = decoded->share();
  const auto columns = static_cast<double>(decoded->columns());
  const auto samples = static_cast<double>(*form_samples);
  rates.kept_bytes = part * columns * mean(Metric::kPipelineRecordBytes) +
                     (1 - part) * static_cast<double>(data_bytes) / samples;
  rates.saved_seconds =
      1e-9 * part * columns * mean(Metric::kPipelineRecordNanoseconds);
  rates.decoded_hits =
      static_cast<double>(count_of(*metrics, Metric::kCacheDecodedHits)) /
      (part * columns);
}

void Loader::Machine::keep_ledger() const {
  price_metrics(*metrics, share.local_ranks, pricing, energy->now());
}

std::string Loader::Machine::ledger() const {
  LedgerCounts counts = counts_of(*metrics, share.local_ranks);
  const EnergyCount::Joules joules = energy->now();
  counts.processor_joules = joules.processors;
  counts.accelerator_joules = joules.accelerators;
  return to_json(counts, pricing);
}

ThreadTimes Loader::Machine::thread_times() const {
  const Executor::Work work = executor->work();
  ThreadTimes times{.busy = work.busy, .cpu = work.cpu};
  for (const OpSpec& op : options.ops) {
    if (op.function != nullptr) times.locked += op.function->waited_for_lock();
  }
  return times;
}

void Loader::Machine::open_link(Loader& loader, const Env& env) {
  std::vector<std::string> paths = agent_paths(env);
  if (paths.empty()) return;
  WireRegistration who{.job = job_key(env, dataset.url),
                       .name = job_name(env, own_command_line()),
                       .dataset = dataset.url,
                       .rank = rank.rank,
                       .world_size = rank.world_size,
                       .local_ranks = share.local_ranks,
                       .threads = most_share.threads,
                       .in_flight = most_share.in_flight,
                       .ram_bytes = most_cache.ram_bytes.value_or(0),
                       .disk_bytes = most_cache.disk_bytes.value_or(0),
                       // Unknown for shards that are yet to be indexed.
                       .dataset_samples = dataset.catalogue == nullptr
                                              ? 0
                                              : dataset.catalogue->samples(),
                       .epochs = options.epochs.value_or(0),
                       .shared_cache = shared_cache,
                       .buckets = buckets_of(dataset)};
  link = open_agent_link(
      {.paths = std::move(paths),
       .registration = std::move(who),
       .rates = [&loader] { return loader.rates(); },
       .set_share = [&loader](const Share& given) { loader.set_share(given); },
       .set_pace =
           [this](const Pace& said) {
             const MutexLock lock(mutex);
             pace = said;
           },
       .elsewhere =
           [this] {
             const MutexLock lock(mutex);
             return elsewhere;
           },
       .trace = [this] { return recent.see(); }});
}

LoaderRates Loader::rates() const { return machine_->rates(); }

LoaderRates Loader::Machine::rates() {
  LoaderRates rates;
  add_counts(rates);
  const Result<Visit> visit = enter();
  if (visit) {  // Else its threads may be gone.
    const Executor::Work work = executor->work();
    rates.tasks = work.tasks;
    rates.busy = work.busy;
    rates.cpu = work.cpu;
  }
  const MutexLock lock(mutex);
  rates.reads = reads_over = std::max(reads_over, rates.reads);
  rates.elapsed = SteadyClock().now() - opened_at;
  rates.training = training;
  if (waiting_since) rates.waiting = SteadyClock().now() - *waiting_since;
  for (const EpochStats& at : stats) {
    rates.samples += at.samples;
    rates.wait += at.wait;
    rates.stalls += at.stalls;
  }
  const LedgerCounts counts = counts_of(*metrics, share.local_ranks);
  rates.gets = static_cast<std::uint64_t>(counts.usage.gets);
  rates.lists = static_cast<std::uint64_t>(counts.usage.lists);
  rates.read_bytes = static_cast<std::uint64_t>(counts.usage.get_bytes);
  rates.dollars = dollars_of(counts, pricing);
  add_form(rates);
  energy->keep(SteadyClock().now());
  rates.threads = share.threads;
  rates.in_flight = share.in_flight;
  rates.epochs = stats.size();
  rates.part_bytes = tunable_part_bytes();
  rates.lookahead = lookahead ? lookahead->samples() : 0;
  return rates;
}

std::vector<StepWait> Loader::take_waits() {
  Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  std::vector<StepWait> waits(m.waits.begin(), m.waits.end());
  m.waits.clear();
  return waits;
}

Settings Loader::Machine::most_settings() const {
  // If no tuner chooses, everything allowed is used: then that is the usual.
  const RankShare& otherwise = chosen ? most_alone : usual;
  return {.threads = allowed_of(allowed.threads, otherwise.threads,
                                most_share.threads),
          .in_flight = allowed_of(allowed.in_flight, otherwise.in_flight,
                                  most_share.in_flight)};
}

void Loader::Machine::apply_settings() {
  const Result<Visit> visit = enter();
  if (!visit) return;
  const MutexLock one_by_one(applying);
  std::size_t window = 1;
  std::optional<std::uint64_t> bytes_per_second;
  Share cache;
  bool has_ram = false;
  bool has_disk = false;
  {
    const MutexLock lock(mutex);
    Settings now = most_settings();
    if (chosen) {
      now.threads = std::min(now.threads, chosen->threads);
      now.in_flight = std::min(now.in_flight, chosen->in_flight);
      now.lookahead = chosen->lookahead;
      if (chosen->part_bytes != 0) part_bytes.set(chosen->part_bytes);
    }
    share.threads = now.threads;
    share.in_flight = window = now.in_flight;
    bytes_per_second = allowed.bytes_per_second;
    has_ram = has_new_cache_share(Setting::kRamBytes, &Share::ram_bytes);
    has_disk = has_new_cache_share(Setting::kDiskBytes, &Share::disk_bytes);
    cache = cache_share;
    executor->set_active(share.threads);
    if (lookahead) {
      lookahead->ask_for_at_least(
          std::max<std::uint64_t>(2 * window, now.lookahead));
    }
    look_ahead();
  }
  // Without the lock: both may send, and an answer may come at once.
  store.limited->set_bytes_per_second(bytes_per_second);
  store.limited->set_window(window);
  if (has_ram) set_cache_share(store, CacheLevel::kRam, cache.ram_bytes);
  if (has_disk) set_cache_share(store, CacheLevel::kDisk, cache.disk_bytes);
}

bool Loader::Machine::has_new_cache_share(
    Setting setting, std::optional<std::uint64_t> Share::*tier) {
  const std::optional<std::uint64_t> most = most_cache.*tier;
  if (!most) return false;
  std::optional<std::uint64_t> wanted = allowed.*tier;
  if (wanted) wanted = std::min(*wanted, *most);
  const auto before = std::exchange(cache_share.*tier, wanted);
  if (wanted == before) return false;
  if (wanted.value_or(*most) == before.value_or(*most)) return true;
  cache_decisions.push_back(
      {.at_seconds =
           std::chrono::duration<double>(SteadyClock().now() - opened_at)
               .count(),
       .job = {},
       .setting = setting,
       .before = static_cast<double>(before.value_or(*most)),
       .after = static_cast<double>(wanted.value_or(*most)),
       .reason = "its share of what the caches of this node may hold",
       .expected_gain = {},
       .found_gain = {}});
  if (cache_decisions.size() > kKeptShares) cache_decisions.pop_front();
  log_debug("share: " + to_string(cache_decisions.back()));
  return true;
}

void Loader::set_share(const Share& wanted) {
  {
    const MutexLock lock(machine_->mutex);
    machine_->allowed = wanted;
  }
  machine_->apply_settings();
}

std::optional<Pace> Loader::pace() const {
  const MutexLock lock(machine_->mutex);
  return machine_->pace;
}

void Loader::set_pace_elsewhere(const Pace& pace) {
  const MutexLock lock(machine_->mutex);
  machine_->elsewhere = pace;
}

Share Loader::most_share() const {
  return {.threads = machine_->most_share.threads,
          .in_flight = machine_->most_share.in_flight,
          .bytes_per_second = {},
          .ram_bytes = machine_->most_cache.ram_bytes,
          .disk_bytes = machine_->most_cache.disk_bytes};
}

}  // namespace leat
