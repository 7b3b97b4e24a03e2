// Which node is to hold which sample, said before training starts.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/next_use.h"

namespace leat {

/// The node that reads each sample in the running epoch; kNoNode for what a
/// dropped tail leaves out. Every node can tell it of every other, so it is a
/// directory without messages (CoorDL, VLDB 2021: each server caches its shard
/// of the first epoch). `job.ranks` is not looked at but for its world size.
///
/// Errors: as Steps::make
Result<std::vector<std::uint32_t>> first_epoch_nodes(const NextUseOptions& job,
                                                     std::uint32_t nodes);
inline constexpr std::uint32_t kNoNode = 0xffffffff;

/// The node whose ranks read each sample most often in the epochs of the job,
/// of those that have not yet their even part of all samples: those that one
/// node reads most often are dealt first. Every node can tell it of every
/// other. `job.ranks` is not looked at but for its world size, nor where the
/// running epoch stands. Takes O(epochs * samples), and `samples * nodes` bytes
/// while it does.
///
/// REQUIRES: at least one node, and the ranks are dealt to them evenly.
/// Errors: as Steps::make; kResourceExhausted: more than 2 GiB
Result<std::vector<std::uint16_t>> nodes_by_frequency(const NextUseOptions& job,
                                                      std::uint16_t nodes);

/// The tier that each sample has on the node whose ranks are `job.ranks`;
/// kNoTier if it has none. NoPFS (SC21): samples sorted by how often this node
/// reads them in the epochs of the job, most often first, fill the fastest
/// tier, then the next. Equals are kept in the order of their first read.
///
/// `capacities` in bytes; `sizes` has one entry, or one a sample.
/// Errors: as Steps::make
Result<std::vector<std::uint8_t>> place_by_frequency(
    const NextUseOptions& job, const std::vector<std::uint64_t>& capacities,
    const std::vector<std::uint64_t>& sizes);
inline constexpr std::uint8_t kNoTier = 0xff;

}  // namespace leat
