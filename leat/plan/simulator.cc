#include "leat/plan/simulator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "leat/plan/cache_policy_kind.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/lane_dealing.h"
#include "leat/plan/placement.h"
#include "leat/plan/simulation_checks.h"
#include "leat/plan/tier_stack.h"

namespace leat {
namespace {

template <class T>
T entry_of(const std::vector<T>& one_or_each, SampleId unit) {
  return one_or_each.size() == 1 ? one_or_each.front()
                                 : one_or_each[unit.value];
}

bool needs_next_use(const std::vector<TierSpec>& tiers) {
  return std::any_of(tiers.begin(), tiers.end(), [](const TierSpec& tier) {
    return has_policy_trait(tier.policy, &CachePolicyKind::goes_by_next_use);
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
    if (options_.peer_memory.has_value()) {
      servers_.emplace(*options_.peer_memory, options_.samples, options_.sizes);
    }
    if (options_.times.has_value()) {
      TimeOptions times = *options_.times;
      // The others take their shares of it.
      times.store_bytes_per_second *=
          static_cast<double>(ranks_) / options_.ranks;
      clock_.emplace(times, ranks_, options_.ranks / options_.nodes);
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
            .is_in_lanes = is_in_lanes(),
            .end_epoch = options_.epochs};
  }

  /// Several ranks read whole blocks in parts of the lanes of their own.
  bool is_in_lanes() const {
    return options_.unit == ReadUnit::kBlock && options_.ranks > 1;
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
              return entry_of(costs_of(options_), sample);
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

  /// Tells which samples tier `index` of the cache of these ranks may hold;
  /// null: any.
  Result<std::function<bool(SampleId)>> planned(std::uint32_t first_rank,
                                                std::size_t index) {
    using Planned = std::function<bool(SampleId)>;
    if (options_.placement == Placement::kFirstEpoch) {
      const std::uint32_t caches = options_.ranks / ranks_per_cache_;
      if (node_of_ == nullptr) {
        LEAT_TRY(auto nodes, first_epoch_nodes(job(first_rank), caches));
        node_of_ = std::make_unique<const std::vector<std::uint32_t>>(
            std::move(nodes));
      }
      return planned_on(*node_of_, first_rank / ranks_per_cache_);
    }
    if (options_.placement == Placement::kFrequency) {
      if (index == 0) {
        std::vector<std::uint64_t> capacities;
        capacities.reserve(options_.tiers.size());
        for (const TierSpec& tier : options_.tiers) {
          capacities.push_back(tier.capacity);
        }
        LEAT_TRY(auto tiers, place_by_frequency(job(first_rank), capacities,
                                                costs_of(options_)));
        tier_of_ =
            std::make_shared<const std::vector<std::uint8_t>>(std::move(tiers));
      }
      return planned_in(tier_of_, index);
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
                                  .samples = units_of(options_),
                                  .capacity = tier.capacity,
                                  .unit = tier.unit,
                                  .window = tier.window,
                                  .planned = std::move(may_hold)}));
      policies.push_back(std::move(policy));
    }
    std::optional<NextUse> next_use;
    if (needs_next_use(options_.tiers)) {
      NextUseOptions readers = job(first_rank);
      // Samples that come again at all come to the rank that has them.
      if (options_.locality != Locality::kNone) {
        readers.ranks = {0, options_.ranks, options_.ranks};
      }
      if (deals_to_holders(options_.locality)) {
        readers.epoch_time = kEpochTime;  // As HolderDealing has it.
      }
      LEAT_TRY(next_use, NextUse::make(readers));
    }
    caches_.emplace_back(std::move(policies), std::move(next_use),
                         costs_of(options_), options_.unit == ReadUnit::kBlock);
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
    if (options_.unit == ReadUnit::kBlock) {
      is_block_read_.assign(
          ranks_, std::vector<bool>(options_.blocks->blocks(), false));
    }
    lanes_.clear();
    if (is_in_lanes()) {
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        lanes_.emplace_back(order, steps_[rank]);
      }
    }
    if (dealing_ != nullptr) LEAT_TRY_VOID(dealing_->seek(epoch, 0, stop));
    for (std::uint64_t k = 0; k < steps_.front().count(); ++k) {
      if (stop.stop_requested()) {
        return simulation_stopped();
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
      if (!clock_.has_value()) continue;
      clock_->end_step();
      if (k > 0) continue;
      counts.first_step_seconds = clock_->seconds() - seconds;
      counts.first_step_wait_seconds = clock_->wait_seconds() - waited;
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
        // A sample that is not at home counts as never read here again.
        const bool is_ours = home / ranks_per_cache_ == rank / ranks_per_cache_;
        read(rank, sample, epoch, p, counts,
             is_ours ? std::nullopt : std::optional(kNever));
      }
      return;
    }
    if (is_in_lanes()) {
      for (const std::uint64_t p : lanes_[rank].positions_of(step)) {
        read_block(rank, sample_at(p), epoch, p, counts);
      }
      return;
    }
    const StepSlice slice = steps_[rank].slice(step);
    for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
      if (options_.unit == ReadUnit::kBlock) {
        read_block(rank, sample_at(p), epoch, p, counts);
      } else {
        read(rank, sample_at(p), epoch, p, counts);
      }
    }
  }

  /// The block of `sample`, if the rank has not read it in this epoch.
  void read_block(std::uint32_t rank, SampleId sample, std::uint64_t epoch,
                  std::uint64_t position, EpochCounts& counts) {
    const std::uint64_t block = options_.blocks->block_of(sample);
    if (is_block_read_[rank][block]) return;
    is_block_read_[rank][block] = true;
    read(rank, SampleId{block}, epoch, position, counts);
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
    // The tier is asked for before the read, after which a sample from a peer
    // may be held here too.
    const std::size_t tier = caches_[cache].read(sample, epoch, position, told);
    const std::uint64_t bytes = entry_of(options_.sizes, sample);
    const std::uint32_t requests =
        options_.requests.empty() ? 1 : entry_of(options_.requests, sample);
    counts.reads += requests;
    const std::uint32_t own_node = rank / (options_.ranks / options_.nodes);
    Source source = Source::kTier;
    std::uint32_t from = 0;
    if (tier != TierStack::kMiss) {
      counts.tier_hits[tier] += requests;
    } else if (const auto node = peer_with(cache, sample)) {
      counts.peer_hits += requests;
      from = *node;
      // A server on the reader's own node sends nothing through a link.
      if (from != own_node) {
        counts.peer_bytes += bytes;
        source = Source::kPeer;
      }
    } else {
      source = Source::kStore;
      counts.gets += requests;
      gets_[rank] += requests;
      counts.get_bytes += bytes;
      if (servers_.has_value()) {  // To whose server it is sent.
        if (servers_->node_of(sample).value_or(own_node) != own_node) {
          counts.peer_bytes += bytes;
        }
      }
    }
    if (!clock_.has_value()) return;
    for (std::uint32_t i = 0; i < requests; ++i) {
      clock_->need(rank, source, bytes / requests, from);
    }
  }

  /// The node that has what this cache has not.
  std::optional<std::uint32_t> peer_with(std::size_t cache, SampleId sample) {
    if (servers_.has_value()) return servers_->find(sample);
    if (options_.scope != CacheScope::kPeers) return std::nullopt;
    for (std::size_t peer = 0; peer < caches_.size(); ++peer) {
      if (peer != cache && caches_[peer].holds(sample)) {
        return static_cast<std::uint32_t>(peer);
      }
    }
    return std::nullopt;
  }

  const SimulationOptions& options_;
  const std::uint32_t ranks_per_cache_;
  const std::uint32_t ranks_;  // That are looked at.
  std::vector<TierStack> caches_;
  std::vector<Steps> steps_;                // The steps of each rank, in a
                                            // whole epoch.
  std::unique_ptr<HolderDealing> dealing_;  // Null: dealt without it.
  std::vector<std::uint64_t> gets_;         // The GETs of each rank, in this
                                            // step.
  std::optional<PeerServers> servers_;
  std::vector<std::vector<bool>> is_block_read_;  // By rank, in this epoch.
  std::vector<LaneDealing>
      lanes_;  // By rank, in this epoch; see is_in_lanes().
  std::optional<WaitModel> clock_;
  std::unique_ptr<const std::vector<std::uint32_t>> node_of_;
  // The placement of one cache.
  std::shared_ptr<const std::vector<std::uint8_t>> tier_of_;
};

}  // namespace

Result<SimulationReport> simulate(const SimulationOptions& options,
                                  const std::stop_token& stop) {
  LEAT_TRY_VOID(check(options));
  Simulation simulation(options);
  LEAT_TRY_VOID(simulation.build());
  return simulation.run(stop);
}

}  // namespace leat
