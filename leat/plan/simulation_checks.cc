#include "leat/plan/simulation_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/plan/cache_policy_kind.h"

namespace leat {
namespace {

Result<void> check_sizes(const SimulationOptions& options) {
  const std::uint64_t units = units_of(options);
  const auto check = [&](const char* what, std::size_t given) -> Result<void> {
    if (given == 1 || given == units) return {};
    return invalid("{} {} for {} samples: give one for all, or one for each",
                   given, what, units);
  };
  LEAT_TRY_VOID(check("sizes", options.sizes.size()));
  LEAT_TRY_VOID(check("costs", costs_of(options).size()));
  if (options.requests.empty()) return {};
  return check("requests", options.requests.size());
}

Result<void> check_unit(const SimulationOptions& options) {
  if (options.unit == ReadUnit::kSample) return {};
  const bool is_divided = options.order.shuffle == Shuffle::kBlock;
  if ((options.ranks == 1 || is_divided) &&
      has_windows(options.order.shuffle) && options.blocks != nullptr &&
      options.tail != Tail::kPad && options.placement == Placement::kAny &&
      options.locality == Locality::kNone) {
    return {};
  }
  return invalid(
      "whole blocks are read in a block shuffle, or by one rank in a stream, "
      "without padding, placement or locality: read samples instead");
}

Result<void> check_counts(const SimulationOptions& options) {
  if (options.samples == 0)
    return invalid("a simulation needs samples: 0 given");
  if (options.epochs == 0) return invalid("a simulation needs epochs: 0 given");
  if (options.nodes == 0 || options.ranks == 0 ||
      options.ranks % options.nodes != 0) {
    return invalid(
        "{} ranks cannot be dealt evenly to {} nodes: take a multiple",
        options.ranks, options.nodes);
  }
  const std::uint32_t together =
      options.scope == CacheScope::kRank ? 1 : options.ranks / options.nodes;
  if (options.only_ranks % together != 0 ||
      options.only_ranks > options.ranks) {
    return invalid(
        "only_ranks is {}: take a multiple of {}, of at most {}, or 0 for all",
        options.only_ranks, together, options.ranks);
  }
  const bool has_peers =
      options.scope == CacheScope::kPeers || options.peer_memory.has_value();
  if (options.only_ranks != 0 && has_peers) {
    return invalid("only_ranks with peers: peers need all ranks, leave it out");
  }
  if (!options.peer_memory.has_value()) return {};
  if (options.scope == CacheScope::kPeers) {
    return invalid(
        "nodes that read each other's tiers (scope peers), and servers beside "
        "them: leave one of them out");
  }
  return check(*options.peer_memory, options.nodes);
}

/// A policy has a table of 4 bytes a sample, and each cache its own policies.
Result<void> check_memory(const SimulationOptions& options) {
  constexpr std::uint64_t kMaxEpochs = 1000000;
  if (options.epochs > kMaxEpochs) {
    return invalid("{} epochs are more than {}", options.epochs, kMaxEpochs);
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
    return exhausted(
        "{} tiers over {} samples would take more than {} bytes: look at fewer "
        "ranks (only_ranks), or at a smaller dataset with caches in proportion",
        tables, options.samples, kMaxTableBytes);
  }
  return {};
}

Result<void> check_tiers(const SimulationOptions& options) {
  for (const TierSpec& tier : options.tiers) {
    if (options.placement == Placement::kAny) continue;
    if (!has_policy_trait(tier.policy, &CachePolicyKind::has_planned)) {
      return invalid(
          "a placement says what a tier of {} holds, and this one is {}: leave "
          "the placement out, or change the policy",
          policies_with(&CachePolicyKind::has_planned), tier.policy);
    }
    if (tier.unit != CapacityUnit::kBytes) {
      return invalid(
          "a placement fills tiers by their size in bytes, and this one has "
          "items: give capacity, or leave the placement out");
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
        "locality \"{}\" deals samples to the caches that hold them: give "
        "tiers",
        to_string(options.locality));
  }
  if (options.placement != Placement::kAny) {
    return invalid(
        "locality \"{}\" says what a cache holds, and so does a placement: "
        "leave one of them out",
        to_string(options.locality));
  }
  for (const TierSpec& tier : options.tiers) {
    if (tier.policy == options.tiers.front().policy &&
        tier.unit == options.tiers.front().unit) {
      continue;
    }
    return invalid(
        "locality \"{}\" takes tiers of one policy, in bytes or in items",
        to_string(options.locality));
  }
  return {};
}

}  // namespace

std::uint64_t units_of(const SimulationOptions& options) {
  return options.unit == ReadUnit::kBlock ? options.blocks->blocks()
                                          : options.samples;
}

const std::vector<std::uint64_t>& costs_of(const SimulationOptions& options) {
  return options.costs.empty() ? options.sizes : options.costs;
}

Result<void> check(const SimulationOptions& options) {
  LEAT_TRY_VOID(check_counts(options));
  LEAT_TRY_VOID(check_unit(options));
  LEAT_TRY_VOID(check_sizes(options));
  LEAT_TRY_VOID(check_tiers(options));
  LEAT_TRY_VOID(check_locality(options));
  return check_memory(options);
}

Error simulation_stopped() {
  return Error(ErrorCode::kCancelled, "the simulation was stopped");
}

}  // namespace leat
