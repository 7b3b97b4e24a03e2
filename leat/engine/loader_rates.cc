// What a loader has done, and how much of its node it may use from now on.
#include "leat/engine/loader_rates.h"

#include <algorithm>
#include <utility>

#include "leat/agent/wire/unix_socket.h"
#include "leat/engine/loader_machine.h"

namespace leat {
namespace {

std::uint64_t count_of(const Metrics& metrics, Metric which) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, metrics.value(which)));
}

std::size_t within(std::optional<std::size_t> wanted, std::size_t usual,
                   std::size_t most) {
  return std::clamp<std::size_t>(wanted.value_or(usual), 1, most);
}

}  // namespace

void Loader::Machine::add_counts(LoaderRates& rates) const {
  const Metrics& m = *metrics;
  rates.batches = count_of(m, Metric::kPipelineBatches);
  rates.reads = count_of(m, Metric::kStoreReads);
  rates.read_bytes = count_of(m, Metric::kStoreReadBytes);
  rates.retried = count_of(m, Metric::kStoreRetries);
  rates.read_time = Nanoseconds(m.value(Metric::kStoreReadNanoseconds));
  rates.read_wait = Nanoseconds(m.value(Metric::kStoreWaitNanoseconds));
  rates.cache_hits = count_of(m, Metric::kCacheRamHits) +
                     count_of(m, Metric::kCacheDiskHits) +
                     count_of(m, Metric::kCachePeerHits);
  rates.cache_misses = count_of(m, Metric::kCacheMisses);
  rates.reserved_bytes = count_of(m, Metric::kRuntimeReservedBytes);
}

void Loader::Machine::open_link(Loader& loader, const Env& env) {
  std::vector<std::string> paths = agent_paths(env);
  if (paths.empty()) return;
  WireRegistration who{.job = job_key(env, dataset.url),
                       .name = dataset.url,
                       .dataset = dataset.url,
                       .rank = rank.rank,
                       .world_size = rank.world_size,
                       .local_ranks = share.local_ranks,
                       .threads = most_share.threads,
                       .in_flight = most_share.in_flight,
                       .dataset_samples = dataset.catalogue->samples()};
  link = open_agent_link(
      {.paths = std::move(paths),
       .registration = std::move(who),
       .rates = [&loader] { return loader.rates(); },
       .set_share =
           [&loader](const Share& given) { loader.set_share(given); }});
}

LoaderRates Loader::rates() const {
  Machine& m = *machine_;
  LoaderRates rates;
  m.add_counts(rates);
  const Result<Machine::Visit> visit = m.enter();
  if (visit) {  // Else its threads may be gone.
    const Executor::Work work = m.executor->work();
    rates.tasks = work.tasks;
    rates.busy = work.busy;
    rates.cpu = work.cpu;
  }
  const MutexLock lock(m.mutex);
  rates.elapsed = SteadyClock().now() - m.opened_at;
  rates.training = m.training;
  for (const EpochStats& epoch : m.stats) {
    rates.samples += epoch.samples;
    rates.wait += epoch.wait;
    rates.stalls += epoch.stalls;
  }
  rates.threads = m.share.threads;
  rates.in_flight = m.share.in_flight;
  rates.lookahead = m.lookahead ? m.lookahead->samples() : 0;
  return rates;
}

std::vector<StepWait> Loader::take_waits() {
  Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  std::vector<StepWait> waits(m.waits.begin(), m.waits.end());
  m.waits.clear();
  return waits;
}

void Loader::set_share(const Share& wanted) {
  Machine& m = *machine_;
  const Result<Machine::Visit> visit = m.enter();
  if (!visit) return;
  std::size_t window = 1;
  {
    const MutexLock lock(m.mutex);
    m.share.threads =
        within(wanted.threads, m.usual.threads, m.most_share.threads);
    m.share.in_flight =
        within(wanted.in_flight, m.usual.in_flight, m.most_share.in_flight);
    window = m.share.in_flight;
    m.executor->set_active(m.share.threads);
    if (m.lookahead) m.lookahead->ask_for_at_least(2 * window);
    m.look_ahead();
  }
  // Without the lock: both may send, and an answer may come at once.
  m.store.limited->set_bytes_per_second(wanted.bytes_per_second);
  m.store.limited->set_window(window);
}

Share Loader::most_share() const {
  return {.threads = machine_->most_share.threads,
          .in_flight = machine_->most_share.in_flight,
          .bytes_per_second = {},
          .ram_bytes = {},
          .disk_bytes = {}};
}

}  // namespace leat
