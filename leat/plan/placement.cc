#include "leat/plan/placement.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace leat {
namespace {

/// Calls `read` with each sample that a rank reads in an epoch, in its order.
template <class Read>
Result<void> walk_epoch(const NextUseOptions& job, std::uint64_t epoch,
                        std::uint32_t rank, const Read& read) {
  LEAT_TRY(const Steps steps,
           Steps::make({.samples = job.samples,
                        .start = epoch == job.epoch ? job.start : 0,
                        .global_batch = job.global_batch,
                        .rank = {rank, job.ranks.world_size},
                        .tail = job.tail}));
  const EpochOrder order(job.samples, job.order, job.blocks, epoch);
  for (std::uint64_t k = 0; k < steps.count(); ++k) {
    const StepSlice slice = steps.slice(k);
    for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
      read(order.at(p % job.samples));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::uint32_t>> first_epoch_nodes(const NextUseOptions& job,
                                                     std::uint32_t nodes) {
  std::vector<std::uint32_t> node_of(job.samples, kNoNode);
  const std::uint32_t ranks_per_node = job.ranks.world_size / nodes;
  for (std::uint32_t rank = 0; rank < job.ranks.world_size; ++rank) {
    LEAT_TRY_VOID(walk_epoch(job, job.epoch, rank, [&](SampleId sample) {
      // Padding reads some a second time: the first one holds it.
      std::uint32_t& node = node_of[sample.value];
      if (node == kNoNode) node = rank / ranks_per_node;
    }));
  }
  return node_of;
}

Result<std::vector<std::uint8_t>> place_by_frequency(
    const NextUseOptions& job, const std::vector<std::uint64_t>& capacities,
    const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint32_t> reads(job.samples, 0);
  std::vector<std::uint32_t> by_first_read;
  for (std::uint64_t epoch = job.epoch; epoch < job.end_epoch; ++epoch) {
    for (std::uint32_t r = 0; r < job.ranks.count; ++r) {
      LEAT_TRY_VOID(
          walk_epoch(job, epoch, job.ranks.first + r, [&](SampleId sample) {
            if (reads[sample.value]++ > 0) return;
            by_first_read.push_back(static_cast<std::uint32_t>(sample.value));
          }));
    }
  }
  std::stable_sort(
      by_first_read.begin(), by_first_read.end(),
      [&](std::uint32_t a, std::uint32_t b) { return reads[a] > reads[b]; });
  std::vector<std::uint8_t> tier_of(job.samples, kNoTier);
  std::vector<std::uint64_t> left = capacities;
  for (const std::uint32_t sample : by_first_read) {
    const std::uint64_t bytes =
        sizes.size() == 1 ? sizes.front() : sizes[sample];
    const auto tier = std::find_if(left.begin(), left.end(),
                                   [&](std::uint64_t l) { return l >= bytes; });
    if (tier == left.end()) continue;
    *tier -= bytes;
    tier_of[sample] = static_cast<std::uint8_t>(tier - left.begin());
  }
  return tier_of;
}

}  // namespace leat
