#include "leat/plan/sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace leat {
namespace {

constexpr std::uint64_t kMostSamples = 50000;
constexpr std::uint64_t kLeastSteps = 20;
constexpr std::uint64_t kMostEpochs = 10;

struct Candidate {
  std::string name;
  std::string policy;  // Empty: no cache.
  double size = 1;     // Of what was asked for.
  CacheScope scope = CacheScope::kNode;
  Placement placement = Placement::kAny;
};

std::vector<Candidate> candidates(const SweepOptions& options) {
  std::vector<Candidate> all = {{.name = "no cache"}};
  if (options.ram_bytes == 0 && options.disk_bytes == 0) return all;
  for (const char* policy : {"fifo", "lru", "never_evict", "belady"}) {
    all.push_back({.name = policy, .policy = policy});
  }
  if (options.nodes > 1) {
    all.push_back({.name = "never_evict + peers",
                   .policy = "never_evict",
                   .scope = CacheScope::kPeers,
                   .placement = Placement::kFirstEpoch});
  }
  for (const double size : {0.5, 2.0, 4.0}) {
    all.push_back({.name = fmt::format("belady x{}", size),
                   .policy = "belady",
                   .size = size});
  }
  return all;
}

/// `share`: the simulated samples of one real sample, at most 1.
std::uint64_t scaled(std::uint64_t value, double share) {
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(value) * share));
}

SimulationOptions job_of(const SweepOptions& options,
                         const Candidate& candidate, std::uint64_t bytes) {
  SimulationOptions job;
  job.samples = options.samples;
  job.sizes = {bytes};
  job.order.seed = options.seed;
  job.global_batch = options.global_batch;
  job.ranks = options.ranks;
  job.nodes = options.nodes;
  job.epochs = options.epochs;
  job.scope = candidate.scope;
  job.placement = candidate.placement;
  job.times = options.times;
  if (candidate.policy.empty()) return job;
  for (const std::uint64_t capacity : {options.ram_bytes, options.disk_bytes}) {
    if (capacity == 0) continue;
    job.tiers.push_back({.policy = candidate.policy,
                         .capacity = scaled(capacity, candidate.size)});
  }
  return job;
}

EpochCounts scaled_up(EpochCounts epoch, double share) {
  const double factor = 1 / share;
  for (std::uint64_t* count : {&epoch.reads, &epoch.peer_hits, &epoch.gets,
                               &epoch.get_bytes, &epoch.peer_bytes}) {
    *count = scaled(*count, factor);
  }
  for (std::uint64_t& hits : epoch.tier_hits) hits = scaled(hits, factor);
  epoch.seconds *= factor;
  epoch.wait_seconds *= factor;
  return epoch;
}

/// Runs `job` in small and writes down what it is in full.
Result<SimulationReport> run_scaled(const SimulationOptions& job,
                                    const std::stop_token& stop) {
  SimulationOptions small = job;
  small.samples = std::min(
      job.samples, std::max(kMostSamples, kLeastSteps * job.global_batch));
  small.epochs = std::min(job.epochs, kMostEpochs);
  const double share =
      static_cast<double>(small.samples) / static_cast<double>(job.samples);
  for (TierSpec& tier : small.tiers) {
    tier.capacity = scaled(tier.capacity, share);
  }
  LEAT_TRY(const SimulationReport told, simulate(small, stop));
  SimulationReport report;
  report.epochs.reserve(job.epochs);
  for (std::uint64_t i = 0; i < job.epochs; ++i) {
    report.epochs.push_back(
        scaled_up(told.epochs[std::min(i, small.epochs - 1)], share));
  }
  return report;
}

}  // namespace

Result<std::vector<SweepRow>> sweep(const SweepOptions& options,
                                    const std::stop_token& stop) {
  if (options.samples == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 "the dataset has no samples: there is nothing to plan");
  }
  const std::uint64_t bytes =
      std::max<std::uint64_t>(1, options.total_bytes / options.samples);
  std::vector<SweepRow> rows;
  for (const Candidate& candidate : candidates(options)) {
    SimulationOptions job = job_of(options, candidate, bytes);
    LEAT_TRY(SimulationReport report, run_scaled(job, stop));
    rows.push_back({candidate.name, std::move(job), std::move(report)});
  }
  return rows;
}

}  // namespace leat
