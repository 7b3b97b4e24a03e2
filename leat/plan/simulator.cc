#include "leat/plan/simulator.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "leat/plan/holder_dealing.h"
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

Result<void> check_locality(const SimulationOptions& options) {
  if (!deals_to_holders(options.locality)) return {};
  if (options.tiers.empty()) {
    return invalid(
        fmt::format("locality \"{}\" deals samples to the caches that hold "
                    "them: give tiers",
                    to_string(options.locality)));
  }
  if (options.placement != Placement::kAny) {
    return invalid(fmt::format(
        "locality \"{}\" says what a cache holds, and so does a placement: "
        "leave one of them out",
        to_string(options.locality)));
  }
  for (const TierSpec& tier : options.tiers) {
    if (tier.policy == options.tiers.front().policy &&
        tier.unit == options.tiers.front().unit) {
      continue;
    }
    return invalid(fmt::format(
        "locality \"{}\" takes tiers of one policy, in bytes or in items",
        to_string(options.locality)));
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
    if (deals_to_holders(options_.locality)) LEAT_TRY_VOID(build_dealing());
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

  Result<void> build_dealing() {
    HolderDealingOptions dealt{
        .samples = options_.samples,
        .order = options_.order,
        .blocks = options_.blocks,
        .global_batch = options_.global_batch,
        .tail = options_.tail,
        .world_size = options_.ranks,
        .policy = options_.tiers.front().policy,
        .unit = options_.tiers.front().unit,
        .cost =
            [this](SampleId sample) {
              return options_.sizes.size() == 1 ? options_.sizes.front()
                                                : options_.sizes[sample.value];
            },
        .is_balanced = options_.locality == Locality::kBalance,
        .epochs = options_.epochs};
    for (const TierSpec& tier : options_.tiers) {
      dealt.capacity = std::max(dealt.capacity, tier.capacity);
    }
    dealt.capacity /= ranks_per_cache_;
    LEAT_TRY(dealing_, HolderDealing::make(dealt));
    return {};
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
      NextUseOptions readers = job(first_rank);
      // Samples that come again at all come to who has them.
      if (options_.locality != Locality::kNone) {
        readers.ranks = {0, options_.ranks, options_.ranks};
      }
      if (deals_to_holders(options_.locality)) {
        readers.epoch_time = kEpochTime;  // As HolderDealing has it.
      }
      LEAT_TRY(next_use, NextUse::make(readers));
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
    if (dealing_ != nullptr) LEAT_TRY_VOID(dealing_->seek(epoch, 0, stop));
    for (std::uint64_t k = 0; k < steps_.front().count(); ++k) {
      if (stop.stop_requested()) {
        return Error(ErrorCode::kCancelled, "the simulation was stopped");
      }
      gets_.assign(ranks_, 0);
      if (dealing_ == nullptr) {
        for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
          read_share(rank, k, epoch, order, counts);
        }
      } else {
        read_dealt(epoch, counts);
      }
      const auto [least, most] = std::ranges::minmax(gets_);
      counts.uneven_gets += most - least;
      if (clock_.has_value()) clock_->end_step();
    }
    if (clock_.has_value()) {
      counts.seconds = clock_->seconds() - seconds;
      counts.wait_seconds = clock_->wait_seconds() - waited;
    }
    return counts;
  }

  void read_share(std::uint32_t rank, std::uint64_t step, std::uint64_t epoch,
                  const EpochOrder& order, EpochCounts& counts) {
    const auto sample_at = [&](std::uint64_t p) {
      return order.at(p < options_.samples ? p : p % options_.samples);
    };
    if (options_.locality == Locality::kSticky) {
      for (const std::uint64_t p :
           positions_at_home(steps_[rank], step, order)) {
        const SampleId sample = sample_at(p);
        const std::uint32_t home = home_of(sample, options_.ranks);
        // What is not at home is taken as never read here again.
        const bool is_ours = home / ranks_per_cache_ == rank / ranks_per_cache_;
        read(rank, sample, epoch, p, counts,
             is_ours ? std::nullopt : std::optional(kNever));
      }
      return;
    }
    const StepSlice slice = steps_[rank].slice(step);
    for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
      read(rank, sample_at(p), epoch, p, counts);
    }
  }

  void read_dealt(std::uint64_t epoch, EpochCounts& counts) {
    for (const DealtSample& dealt : dealing_->next_step()) {
      if (dealt.rank >= ranks_) continue;
      read(dealt.rank, dealt.sample, epoch, dealt.position, counts,
           dealt.next_use);
    }
  }

  void read(std::uint32_t rank, SampleId sample, std::uint64_t epoch,
            std::uint64_t position, EpochCounts& counts,
            std::optional<AccessTime> told = std::nullopt) {
    const std::size_t cache = rank / ranks_per_cache_;
    // Asked before the read: what comes from a peer may then be held here too.
    const std::size_t tier = caches_[cache].read(sample, epoch, position, told);
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
      ++gets_[rank];
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
  std::vector<Steps> steps_;                // Of each rank, of a whole epoch.
  std::unique_ptr<HolderDealing> dealing_;  // Null: dealt without it.
  std::vector<std::uint64_t> gets_;         // Of each rank, in this step.
  std::optional<WaitModel> clock_;
  std::shared_ptr<const std::vector<std::uint32_t>> node_of_;
  std::shared_ptr<const std::vector<std::uint8_t>> tier_of_;  // Of one cache.
};

}  // namespace

Result<SimulationReport> simulate(const SimulationOptions& options,
                                  const std::stop_token& stop) {
  LEAT_TRY_VOID(check_counts(options));
  LEAT_TRY_VOID(check_tiers(options));
  LEAT_TRY_VOID(check_locality(options));
  LEAT_TRY_VOID(check_memory(options));
  Simulation simulation(options);
  LEAT_TRY_VOID(simulation.build());
  return simulation.run(stop);
}

}  // namespace leat
