#include "leat/plan/simulator.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "leat/plan/placement.h"
#include "leat/plan/tier_stack.h"

namespace leat {
namespace {

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> check_counts(const SimulationOptions& options) {
  if (options.samples == 0)
    return invalid("a simulation needs samples: 0 given");
  if (options.epochs == 0) return invalid("a simulation needs epochs: 0 given");
  if (options.sizes.size() != 1 && options.sizes.size() != options.samples) {
    return invalid(fmt::format(
        "{} sizes for {} samples: give one for all, or one for each",
        options.sizes.size(), options.samples));
  }
  if (options.nodes == 0 || options.ranks == 0 ||
      options.ranks % options.nodes != 0) {
    return invalid(fmt::format(
        "{} ranks cannot be dealt evenly to {} nodes: take a multiple",
        options.ranks, options.nodes));
  }
  const std::uint32_t together =
      options.scope == CacheScope::kRank ? 1 : options.ranks / options.nodes;
  if (options.only_ranks % together != 0 ||
      options.only_ranks > options.ranks) {
    return invalid(
        fmt::format("only_ranks is {}: take a multiple of {}, of at "
                    "most {}, or 0 for all",
                    options.only_ranks, together, options.ranks));
  }
  if (options.only_ranks != 0 && options.scope == CacheScope::kPeers) {
    return invalid("only_ranks with peers: peers need all ranks, leave it out");
  }
  return {};
}

/// A policy has a table of 4 bytes a sample, and each cache its own policies.
Result<void> check_memory(const SimulationOptions& options) {
  constexpr std::uint64_t kMaxEpochs = 1000000;
  if (options.epochs > kMaxEpochs) {
    return invalid(
        fmt::format("{} epochs are more than {}", options.epochs, kMaxEpochs));
  }
  const std::uint64_t ranks =
      options.only_ranks == 0 ? options.ranks : options.only_ranks;
  const std::uint64_t tables =
      std::max<std::uint64_t>(1, options.tiers.size()) *
      (options.scope == CacheScope::kRank
           ? ranks
           : std::max<std::uint64_t>(1,
                                     ranks / (options.ranks / options.nodes)));
  if (options.samples > kMaxTableBytes / 4 / tables) {
    return Error(
        ErrorCode::kResourceExhausted,
        fmt::format("{} tiers over {} samples would take more than {} bytes: "
                    "look at fewer ranks (only_ranks), or at a smaller dataset "
                    "with caches in proportion",
                    tables, options.samples, kMaxTableBytes));
  }
  return {};
}

Result<void> check_tiers(const SimulationOptions& options) {
  for (const TierSpec& tier : options.tiers) {
    if (options.placement == Placement::kAny) continue;
    if (tier.policy != "never_evict" || tier.unit != CapacityUnit::kBytes) {
      return invalid(fmt::format(
          "a placement says what a tier of never_evict holds, in bytes, and "
          "this one is {}: leave the placement out, or change the tier",
          tier.policy));
    }
  }
  if (options.times.has_value() && options.times->max_in_flight == 0) {
    return invalid("max_in_flight is 0: nothing could be requested; take 1");
  }
  return {};
}

bool needs_next_use(const std::vector<TierSpec>& tiers) {
  return std::any_of(tiers.begin(), tiers.end(), [](const TierSpec& tier) {
    return tier.policy == "belady" || tier.policy == "windowed_belady";
  });
}

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        ranks_per_cache_(options.scope == CacheScope::kRank
                             ? 1
                             : options.ranks / options.nodes),
        ranks_(options.only_ranks == 0 ? options.ranks : options.only_ranks) {}

  /// To be called once, before run().
  Result<void> build() {
    for (std::uint32_t first = 0; first < ranks_; first += ranks_per_cache_) {
      LEAT_TRY_VOID(add_cache(first));
    }
    steps_.reserve(ranks_);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      LEAT_TRY(const Steps steps,
               Steps::make({.samples = options_.samples,
                            .global_batch = options_.global_batch,
                            .rank = {rank, options_.ranks},
                            .tail = options_.tail}));
      steps_.push_back(steps);
    }
    if (options_.times.has_value()) {
      clock_.emplace(*options_.times, ranks_, options_.ranks / options_.nodes);
    }
    return {};
  }

  Result<SimulationReport> run(const std::stop_token& stop) {
    SimulationReport report;
    report.epochs.reserve(options_.epochs);
    for (std::uint64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      LEAT_TRY(auto counts, run_epoch(epoch, stop));
      report.epochs.push_back(std::move(counts));
    }
    return report;
  }

 private:
  NextUseOptions job(std::uint32_t first_rank) const {
    return {.samples = options_.samples,
            .order = options_.order,
            .blocks = options_.blocks,
            .global_batch = options_.global_batch,
            .tail = options_.tail,
            .ranks = {first_rank, ranks_per_cache_, options_.ranks},
            .end_epoch = options_.epochs};
  }

  /// What tier `index` of the cache of these ranks may hold; null: anything.
  Result<std::function<bool(SampleId)>> planned(std::uint32_t first_rank,
                                                std::size_t index) {
    using Planned = std::function<bool(SampleId)>;
    if (options_.placement == Placement::kFirstEpoch) {
      const std::uint32_t caches = options_.ranks / ranks_per_cache_;
      if (node_of_ == nullptr) {
        LEAT_TRY(auto nodes, first_epoch_nodes(job(first_rank), caches));
        node_of_ = std::make_shared<const std::vector<std::uint32_t>>(
            std::move(nodes));
      }
      return Planned([nodes = node_of_, cache = first_rank / ranks_per_cache_](
                         SampleId id) { return (*nodes)[id.value] == cache; });
    }
    if (options_.placement == Placement::kFrequency) {
      if (index == 0) {
        std::vector<std::uint64_t> capacities;
        capacities.reserve(options_.tiers.size());
        for (const TierSpec& tier : options_.tiers) {
          capacities.push_back(tier.capacity);
        }
        LEAT_TRY(auto tiers, place_by_frequency(job(first_rank), capacities,
                                                options_.sizes));
        tier_of_ =
            std::make_shared<const std::vector<std::uint8_t>>(std::move(tiers));
      }
      return Planned([tiers = tier_of_, index](SampleId id) {
        return (*tiers)[id.value] == index;
      });
    }
    return Planned(nullptr);
  }

  Result<void> add_cache(std::uint32_t first_rank) {
    std::vector<std::unique_ptr<CachePolicy>> policies;
    policies.reserve(options_.tiers.size());
    for (std::size_t i = 0; i < options_.tiers.size(); ++i) {
      const TierSpec& tier = options_.tiers[i];
      LEAT_TRY(auto may_hold, planned(first_rank, i));
      LEAT_TRY(auto policy,
               make_cache_policy({.name = tier.policy,
                                  .samples = options_.samples,
                                  .capacity = tier.capacity,
                                  .unit = tier.unit,
                                  .window = tier.window,
                                  .planned = std::move(may_hold)}));
      policies.push_back(std::move(policy));
    }
    std::optional<NextUse> next_use;
    if (needs_next_use(options_.tiers)) {
      LEAT_TRY(next_use, NextUse::make(job(first_rank)));
    }
    caches_.emplace_back(std::move(policies), std::move(next_use),
                         options_.sizes);
    return {};
  }

  Result<EpochCounts> run_epoch(std::uint64_t epoch,
                                const std::stop_token& stop) {
    const EpochOrder order(options_.samples, options_.order, options_.blocks,
                           epoch);
    EpochCounts counts{.tier_hits =
                           std::vector<std::uint64_t>(options_.tiers.size())};
    const double seconds = clock_.has_value() ? clock_->seconds() : 0;
    const double waited = clock_.has_value() ? clock_->wait_seconds() : 0;
    for (std::uint64_t k = 0; k < steps_.front().count(); ++k) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "the simulation was stopped");
      }
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        const StepSlice slice = steps_[rank].slice(k);
        for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
          const std::uint64_t place =
              p < options_.samples ? p : p % options_.samples;
          read(rank, order.at(place), epoch, p, counts);
        }
      }
      if (clock_.has_value()) clock_->end_step();
    }
    if (clock_.has_value()) {
      counts.seconds = clock_->seconds() - seconds;
      counts.wait_seconds = clock_->wait_seconds() - waited;
    }
    return counts;
  }

  void read(std::uint32_t rank, SampleId sample, std::uint64_t epoch,
            std::uint64_t position, EpochCounts& counts) {
    const std::size_t cache = rank / ranks_per_cache_;
    // Asked before the read: what comes from a peer may then be held here too.
    const std::size_t tier = caches_[cache].read(sample, epoch, position);
    const std::uint64_t bytes = options_.sizes.size() == 1
                                    ? options_.sizes.front()
                                    : options_.sizes[sample.value];
    ++counts.reads;
    Source source = Source::kTier;
    if (tier != TierStack::kMiss) {
      ++counts.tier_hits[tier];
    } else if (options_.scope == CacheScope::kPeers &&
               peer_holds(cache, sample)) {
      source = Source::kPeer;
      ++counts.peer_hits;
      counts.peer_bytes += bytes;
    } else {
      source = Source::kStore;
      ++counts.gets;
      counts.get_bytes += bytes;
    }
    if (clock_.has_value()) clock_->need(rank, source, bytes);
  }

  bool peer_holds(std::size_t cache, SampleId sample) const {
    for (std::size_t peer = 0; peer < caches_.size(); ++peer) {
      if (peer != cache && caches_[peer].holds(sample)) return true;
    }
    return false;
  }

  const SimulationOptions& options_;
  const std::uint32_t ranks_per_cache_;
  const std::uint32_t ranks_;  // That are looked at.
  std::vector<TierStack> caches_;
  std::vector<Steps> steps_;  // Of each rank, of a whole epoch.
  std::optional<WaitModel> clock_;
  std::shared_ptr<const std::vector<std::uint32_t>> node_of_;
  std::shared_ptr<const std::vector<std::uint8_t>> tier_of_;  // Of one cache.
};

}  // namespace

Result<SimulationReport> simulate(const SimulationOptions& options,
                                  const std::stop_token& stop) {
  LEAT_TRY_VOID(check_counts(options));
  LEAT_TRY_VOID(check_tiers(options));
  LEAT_TRY_VOID(check_memory(options));
  Simulation simulation(options);
  LEAT_TRY_VOID(simulation.build());
  return simulation.run(stop);
}

}  // namespace leat
