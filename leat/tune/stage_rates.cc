#include "leat/tune/stage_rates.h"

#include <algorithm>

namespace leat {
namespace {

double ratio(double of, double to) { return to > 0 ? of / to : 0; }

// Counters of a trace that somebody edited may fall.
double grown(double before, double after) {
  return std::max(0.0, after - before);
}
double grown(std::uint64_t before, std::uint64_t after) {
  return after > before ? static_cast<double>(after - before) : 0;
}

std::optional<double> rate_of(double visits, double seconds) {
  if (visits <= 0 || seconds <= 0) return std::nullopt;
  return 1 / (visits * seconds);
}

}  // namespace

std::optional<double> StageRates::per_request() const {
  return rate_of(reads_per_sample, latency_seconds);
}

std::optional<double> StageRates::per_thread() const {
  return rate_of(tasks_per_sample, task_seconds);
}

double StageRates::in_flight_of(std::size_t most) const {
  return std::min(mean_in_flight, static_cast<double>(most));
}

std::optional<double> StageRates::per_core() const {
  return rate_of(tasks_per_sample, task_cpu_seconds);
}

StageRates rates_between(const Observation& before, const Observation& after) {
  StageRates rates;
  rates.seconds = grown(before.at_seconds, after.at_seconds);
  const double delivered = grown(before.samples, after.samples);
  const double tasks = grown(before.tasks, after.tasks);
  // Batches are coarse: a second may bring none, though all work.
  const double samples = tasks > 0 ? tasks : delivered;
  rates.samples = static_cast<std::uint64_t>(samples);
  rates.samples_per_second = ratio(samples, rates.seconds);
  const auto share = [&](double from, double to) {
    return std::min(1.0, ratio(grown(from, to), rates.seconds));
  };
  rates.wait_share = share(before.wait_seconds, after.wait_seconds);
  rates.storage_share =
      share(before.storage_wait_seconds, after.storage_wait_seconds);
  rates.memory_share =
      share(before.memory_wait_seconds, after.memory_wait_seconds);
  const double training =
      grown(before.training_seconds, after.training_seconds);
  if (delivered > 0 && training > 0) rates.training_rate = delivered / training;

  const double reads = grown(before.reads, after.reads);
  const double read_seconds = grown(before.read_seconds, after.read_seconds);
  rates.reads_per_sample = ratio(reads, samples);
  rates.latency_seconds = ratio(read_seconds, reads);
  rates.mean_in_flight = ratio(read_seconds, rates.seconds);
  rates.bytes_per_read =
      ratio(grown(before.read_bytes, after.read_bytes), reads);
  rates.failed_share =
      ratio(grown(before.failed_reads, after.failed_reads), reads);
  rates.late_share = ratio(grown(before.late_reads, after.late_reads), reads);
  const double hits = grown(before.cache_hits, after.cache_hits);
  rates.hit_share =
      ratio(hits, hits + grown(before.cache_misses, after.cache_misses));

  const double busy = grown(before.busy_seconds, after.busy_seconds);
  rates.tasks_per_sample = ratio(tasks, samples);
  rates.task_seconds = ratio(busy, tasks);
  rates.task_cpu_seconds =
      ratio(grown(before.cpu_seconds, after.cpu_seconds), tasks);
  rates.mean_busy_threads = ratio(busy, rates.seconds);
  return rates;
}

}  // namespace leat
