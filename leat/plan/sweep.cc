#include "leat/plan/sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/plan/cache_policy_kind.h"
#include "leat/plan/permutation.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostSweptSamples = 50000;
constexpr std::uint64_t kLeastSteps = 20;
constexpr std::uint64_t kMostSweptEpochs = 10;
// For blocks.
constexpr std::uint64_t kLeastWindows = 20;
constexpr std::uint64_t kMostBlockSamples = 1000000;
constexpr std::uint64_t kDrawnBy = 1;  // A seed: which units stand for all.

struct Candidate {
  std::string name;
  std::string policy;  // Empty: no cache.
  double size = 1;     // The size asked for.
  CacheScope scope = CacheScope::kNode;
  Placement placement = Placement::kAny;
  bool is_ram_of_peers = false;  // The memory goes to servers of all nodes.
};

std::vector<Candidate> candidates(const SweepOptions& options) {
  std::vector<Candidate> all = {{.name = "no cache"}};
  if (options.ram_bytes == 0 && options.disk_bytes == 0) return all;
  const auto kinds = cache_policy_kinds();
  for (auto place = kinds.rbegin(); place != kinds.rend(); ++place) {
    const CachePolicyKind* const kind = *place;
    if (!kind->is_swept) continue;
    all.push_back(
        {.name = std::string(kind->name), .policy = std::string(kind->name)});
  }
  if (options.nodes > 1) {
    if (options.unit == ReadUnit::kSample) {  // It places samples.
      all.push_back({.name = "never_evict + peers",
                     .policy = "never_evict",
                     .scope = CacheScope::kPeers,
                     .placement = Placement::kFirstEpoch});
    }
    if (options.ram_bytes != 0) {
      all.push_back(
          {.name = "peers", .policy = "belady", .is_ram_of_peers = true});
    }
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

/// A smaller job that is simulated in place of the real one: some of its units.
struct Stand {
  std::uint64_t samples = 0;
  std::shared_ptr<const BlockMap> blocks = nullptr;
  std::vector<std::uint64_t> units = {};  // Their numbers in the job.
  Tail tail = Tail::kDrop;
  double share = 1;  // The share of the job's data.
  double times = 1;  // An epoch of the job is this many of it.
};

/// The samples that an epoch of the job delivers.
std::uint64_t delivered(const SweepOptions& options) {
  return options.tail == Tail::kDrop
             ? options.samples - options.samples % options.global_batch
             : options.samples;
}

std::vector<std::uint64_t> ids_below(std::uint64_t end) {
  std::vector<std::uint64_t> numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// All of the job or, if it is larger, whole steps with at most `most` samples.
Stand stand_of_samples(const SweepOptions& options, std::uint64_t most) {
  if (options.samples <= most) {
    return {.samples = options.samples,
            .units = ids_below(options.samples),
            .tail = options.tail};
  }
  Stand stand{.samples = most - most % options.global_batch,
              .tail = Tail::kKeep};
  const Permutation drawn(options.samples, kDrawnBy, 0);
  stand.units.reserve(stand.samples);
  for (std::uint64_t i = 0; i < stand.samples; ++i) {
    stand.units.push_back(drawn.at(i));
  }
  return stand;
}

/// The same in whole blocks, each as it is.
Stand stand_of_blocks(const SweepOptions& options, std::uint64_t most) {
  const BlockMap& blocks = *options.blocks;
  const std::uint64_t most_blocks =
      std::uint64_t{kLeastWindows} * options.order.window_blocks;
  Stand stand{.tail = Tail::kKeep};
  const Permutation drawn(blocks.blocks(), kDrawnBy, 0);
  std::vector<std::uint64_t> chosen;
  std::vector<SampleSpan> spans;
  while (chosen.size() < blocks.blocks() &&
         (spans.size() < most ||
          (chosen.size() < most_blocks && spans.size() < kMostBlockSamples))) {
    const std::uint64_t block = drawn.at(chosen.size());
    const auto object = static_cast<std::uint32_t>(chosen.size());
    const std::uint64_t first = blocks.first_sample(block);
    const std::uint64_t count = blocks.first_sample(block + 1) - first;
    for (std::uint64_t i = 0; i < count; ++i) {
      spans.push_back(
          {.object = ObjectIndex{object}, .begin = i, .end = i + 1});
      if (options.unit == ReadUnit::kSample) stand.units.push_back(first + i);
    }
    chosen.push_back(block);
  }
  if (chosen.size() == blocks.blocks()) {
    return {
        .samples = options.samples,
        .blocks = options.blocks,
        .units = ids_below(options.unit == ReadUnit::kBlock ? blocks.blocks()
                                                            : options.samples),
        .tail = options.tail};
  }
  stand.samples = spans.size();
  // Each an object of its own, so that none is cut or joined.
  stand.blocks = std::make_shared<BlockMap>(
      BlockMap::cut(spans, /*piece_bytes=*/options.samples));
  if (options.unit == ReadUnit::kBlock) stand.units = std::move(chosen);
  return stand;
}

Stand stand_of(const SweepOptions& options) {
  const std::uint64_t most =
      std::max(kMostSweptSamples, kLeastSteps * options.global_batch);
  Stand stand = has_windows(options.order.shuffle)
                    ? stand_of_blocks(options, most)
                    : stand_of_samples(options, most);
  if (stand.samples == options.samples) return stand;
  stand.share =
      static_cast<double>(stand.samples) / static_cast<double>(options.samples);
  stand.times = static_cast<double>(delivered(options)) /
                static_cast<double>(stand.samples);
  return stand;
}

SimulationOptions job_of(const SweepOptions& options,
                         const Candidate& candidate) {
  SimulationOptions job;
  job.samples = options.samples;
  job.objects = options.objects;
  job.unit = options.unit;
  job.order = options.order;
  job.blocks = options.blocks;
  job.tail = options.tail;
  job.global_batch = options.global_batch;
  job.ranks = options.ranks;
  job.nodes = options.nodes;
  job.epochs = options.epochs;
  job.scope = candidate.scope;
  job.placement = candidate.placement;
  job.times = options.times;
  if (candidate.policy.empty()) return job;
  std::uint64_t ram_bytes = options.ram_bytes;
  if (candidate.is_ram_of_peers) {
    job.peer_memory = {.bytes = std::exchange(ram_bytes, 0),
                       .servers = options.nodes};
  }
  for (const std::uint64_t capacity : {ram_bytes, options.disk_bytes}) {
    if (capacity == 0) continue;
    job.tiers.push_back({.policy = candidate.policy,
                         .capacity = scaled(capacity, candidate.size)});
  }
  return job;
}

/// Makes the times of an epoch of `steps` steps those of `times` as many. The
/// first step of a run waits for what later ones find on the way, and is the
/// only such step, however long the epoch.
void scale_times(EpochCounts& epoch, double times, double steps,
                 bool is_first) {
  const bool is_apart = is_first && steps > 1;
  const double more = is_apart ? (steps * times - 1) / (steps - 1) : times;
  const auto scale = [&](double& seconds, double of_first_step) {
    const double once = is_apart ? of_first_step : 0;
    seconds = once + (seconds - once) * more;
  };
  scale(epoch.seconds, epoch.first_step_seconds);
  scale(epoch.wait_seconds, epoch.first_step_wait_seconds);
}

EpochCounts scaled_up(EpochCounts epoch, double times, double steps,
                      bool is_first) {
  for (std::uint64_t* count :
       {&epoch.reads, &epoch.peer_hits, &epoch.uneven_gets, &epoch.gets,
        &epoch.get_bytes, &epoch.peer_bytes}) {
    *count = scaled(*count, times);
  }
  for (std::uint64_t& hits : epoch.tier_hits) hits = scaled(hits, times);
  scale_times(epoch, times, steps, is_first);
  return epoch;
}

/// The job that stands for `job`, without caches.
SimulationOptions standing_for(const SimulationOptions& job, const Stand& stand,
                               const SweepOptions& options) {
  SimulationOptions small = job;
  small.samples = stand.samples;
  small.blocks = stand.blocks;
  small.tail = stand.tail;
  small.epochs = std::min(job.epochs, kMostSweptEpochs);
  small.sizes.clear();
  for (const std::uint64_t unit : stand.units) {
    const ReadSize read = options.read_size(unit);
    small.sizes.push_back(read.bytes);
    small.costs.push_back(read.cost);
    small.requests.push_back(read.requests);
  }
  return small;
}

}  // namespace

Result<std::vector<SweepRow>> sweep(const SweepOptions& options,
                                    const std::stop_token& stop) {
  LEAT_CHECK(options.read_size != nullptr);
  if (options.samples == 0) {
    return invalid("the dataset has no samples: there is nothing to plan");
  }
  // Errors are reported about the whole job, and not about its stand-in.
  LEAT_TRY_VOID(Steps::make({.samples = options.samples,
                             .global_batch = options.global_batch,
                             .rank = {0, options.ranks},
                             .tail = options.tail}));
  const Stand stand = stand_of(options);
  const double steps = std::ceil(static_cast<double>(stand.samples) /
                                 static_cast<double>(options.global_batch));
  const std::vector<Candidate> all = candidates(options);
  SimulationOptions small =
      standing_for(job_of(options, all.front()), stand, options);
  std::vector<SweepRow> rows;
  for (const Candidate& candidate : all) {
    if (!options.only.empty() &&
        std::ranges::find(options.only, candidate.name) == options.only.end()) {
      continue;
    }
    SimulationOptions job = job_of(options, candidate);
    small.scope = job.scope;
    small.placement = job.placement;
    small.tiers = job.tiers;
    for (TierSpec& tier : small.tiers) {
      tier.capacity = scaled(tier.capacity, stand.share);
    }
    small.peer_memory = job.peer_memory;
    if (small.peer_memory) {
      small.peer_memory->bytes = scaled(small.peer_memory->bytes, stand.share);
    }
    LEAT_TRY(const SimulationReport told, simulate(small, stop));
    SimulationReport report;
    report.epochs.reserve(job.epochs);
    for (std::uint64_t i = 0; i < job.epochs; ++i) {
      report.epochs.push_back(
          scaled_up(told.epochs[std::min(i, small.epochs - 1)], stand.times,
                    steps, /*is_first=*/i == 0));
    }
    rows.push_back({candidate.name, std::move(job), std::move(report)});
  }
  return rows;
}

}  // namespace leat
