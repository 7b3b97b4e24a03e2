// Decides before training which node will hold which sample.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

struct NextUseOptions;  // next_use.h

/// Which samples a node's tiers may hold; for never_evict alone.
enum class Placement : std::uint8_t {
  kAny,
  kFirstEpoch,  ///< Samples that the node reads in the first epoch (CoorDL).
  /// Samples that the node reads most often in all epochs (NoPFS).
  kFrequency,
};

/// The name that users give: "any", "first_epoch" or "frequency".
std::string_view to_string(Placement placement);
/// All names, in the order of the values.
std::span<const std::string_view> placement_names();
/// Errors: kInvalidArgument: there is no such name
Result<Placement> parse_placement(std::string_view name);

/// The node that reads each sample in the running epoch; kNoNode for samples in
/// a dropped tail. Every node can compute it for all others, so it is a
/// directory without messages (CoorDL, VLDB 2021: each server caches its shard
/// of the first epoch). Only the world size of `job.ranks` matters.
///
/// Errors: as Steps::make
Result<std::vector<std::uint32_t>> first_epoch_nodes(const NextUseOptions& job,
                                                     std::uint32_t nodes);
inline constexpr std::uint32_t kNoNode = 0xffffffff;

/// The node whose ranks read each sample most often in the epochs of the job,
/// among the nodes that do not have their even part of all samples yet: samples
/// that one node reads most often are dealt first. Every node can compute it
/// for all others. Only the world size of `job.ranks` matters; the running
/// epoch's position does not. Takes O(epochs * samples) time, and temporarily
/// `samples * nodes` bytes.
///
/// REQUIRES: at least one node, and the ranks are dealt to them evenly.
/// Errors: as Steps::make; kResourceExhausted: more than 2 GiB
Result<std::vector<std::uint16_t>> nodes_by_frequency(const NextUseOptions& job,
                                                      std::uint16_t nodes);

/// The tier of each sample on the node whose ranks are `job.ranks`; kNoTier if
/// it has none. NoPFS (SC21): samples sorted by how often this node reads them
/// in the epochs of the job, most often first, fill the fastest tier, then the
/// next. Ties stay in the order of their first read.
///
/// `capacities` in bytes; `sizes` has one entry, or one a sample.
/// Errors: as Steps::make
Result<std::vector<std::uint8_t>> place_by_frequency(
    const NextUseOptions& job, const std::vector<std::uint64_t>& capacities,
    const std::vector<std::uint64_t>& sizes);
inline constexpr std::uint8_t kNoTier = 0xff;

/// The samples of first_epoch_nodes() on `node`, for CachePolicySpec::planned
/// of each of its tiers. Takes a bit for each sample.
std::function<bool(SampleId)> planned_on(
    const std::vector<std::uint32_t>& node_of, std::uint32_t node);

/// The samples of place_by_frequency() in `tier`, for its
/// CachePolicySpec::planned.
std::function<bool(SampleId)> planned_in(
    std::shared_ptr<const std::vector<std::uint8_t>> tier_of, std::size_t tier);

}  // namespace leat
