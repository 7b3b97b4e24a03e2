#include "leat/plan/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

#include "leat/base/errors.h"
#include "leat/plan/next_use.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, 3> kPlacementNames = {
    "any", "first_epoch", "frequency"};

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

std::string_view to_string(Placement placement) {
  return kPlacementNames[static_cast<std::size_t>(placement)];
}

std::span<const std::string_view> placement_names() { return kPlacementNames; }

Result<Placement> parse_placement(std::string_view name) {
  const auto found = std::ranges::find(kPlacementNames, name);
  if (found != kPlacementNames.end()) {
    return static_cast<Placement>(found - kPlacementNames.begin());
  }
  return invalid("placement=\"{}\"; it is one of {}", name,
                 fmt::join(kPlacementNames, ", "));
}

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

Result<std::vector<std::uint16_t>> nodes_by_frequency(const NextUseOptions& job,
                                                      std::uint16_t nodes) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{2} << 30;
  if (job.samples > kMostBytes / nodes) {
    return exhausted(
        "to place {} samples on {} nodes by how often they read them takes "
        "more than {} bytes: place them by key",
        job.samples, nodes, kMostBytes);
  }
  NextUseOptions whole = job;
  whole.start = 0;
  std::vector<std::uint8_t> reads(job.samples * nodes, 0);
  const std::uint32_t ranks_per_node = job.ranks.world_size / nodes;
  for (std::uint64_t epoch = 0; epoch < job.end_epoch; ++epoch) {
    for (std::uint32_t rank = 0; rank < job.ranks.world_size; ++rank) {
      LEAT_TRY_VOID(walk_epoch(whole, epoch, rank, [&](SampleId sample) {
        std::uint8_t& of = reads[sample.value * nodes + rank / ranks_per_node];
        if (of < 255) ++of;
      }));
    }
  }
  const auto of_sample = [&](std::uint64_t sample) {
    return std::span(reads).subspan(sample * nodes, nodes);
  };
  // The most that any node reads it, most first.
  std::vector<std::vector<std::uint32_t>> by_most(256);
  for (std::uint64_t i = 0; i < job.samples; ++i) {
    by_most[std::ranges::max(of_sample(i))].push_back(
        static_cast<std::uint32_t>(i));
  }
  std::vector<std::uint16_t> node_of(job.samples);
  std::vector<std::uint64_t> room(nodes, (job.samples + nodes - 1) / nodes);
  for (auto samples = by_most.rbegin(); samples != by_most.rend(); ++samples) {
    for (const std::uint32_t sample : *samples) {
      const auto of = of_sample(sample);
      std::size_t best = nodes;
      for (std::size_t node = 0; node < nodes; ++node) {
        if (room[node] == 0) continue;
        if (best == nodes || of[node] > of[best]) best = node;
      }
      --room[best];
      node_of[sample] = static_cast<std::uint16_t>(best);
    }
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

std::function<bool(SampleId)> planned_on(
    const std::vector<std::uint32_t>& node_of, std::uint32_t node) {
  std::vector<bool> is_here(node_of.size());
  for (std::size_t i = 0; i < node_of.size(); ++i) {
    is_here[i] = node_of[i] == node;
  }
  return
      [is_here = std::move(is_here)](SampleId id) { return is_here[id.value]; };
}

std::function<bool(SampleId)> planned_in(
    std::shared_ptr<const std::vector<std::uint8_t>> tier_of,
    std::size_t tier) {
  return [tier_of = std::move(tier_of), tier](SampleId id) {
    return (*tier_of)[id.value] == tier;
  };
}

}  // namespace leat
