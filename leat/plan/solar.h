// SOLAR's ladder: the savings from dealing samples to the nodes that hold them.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/order.h"

namespace leat {

/// How the samples of a global batch are dealt to nodes. All ways deal the same
/// samples to each step, so the sum of the gradients is unchanged. State that
/// depends on a node's own samples differs: the statistics of a BatchNorm, and
/// random numbers drawn by rank. After Sun et al., "SOLAR", VLDB 2023 (its
/// abstract; the details are our reconstruction). For comparison: loaders use
/// holder_dealing.h.
enum class Dealing : std::uint8_t {
  kRuns,     ///< Node i takes the i-th run, as Steps does.
  kHolders,  ///< To a node that holds it, as long as all get the same number.
  /// To a node that holds it; samples that no node holds are dealt evenly.
  /// Nodes then get unequal numbers and must weigh their gradients.
  kBalanced,
};

/// Deals `batch` to `nodes` nodes. `holds(node, sample)` is a cache's answer.
/// Each sample goes to one node. REQUIRES: nodes > 0.
std::vector<std::vector<SampleId>> deal_batch(
    std::span<const SampleId> batch, std::uint32_t nodes, Dealing dealing,
    const std::function<bool(std::uint32_t, SampleId)>& holds);

struct SolarOptions {
  std::uint64_t samples = 0;
  std::uint64_t seed = 0;
  std::uint64_t global_batch = 0;
  std::uint32_t nodes = 1;
  std::uint64_t epochs = 1;
  /// Room of each node, under Belady's policy.
  std::uint64_t capacity_items = 0;
  Dealing dealing = Dealing::kRuns;
  /// kFewestLoads uses the order of epochs with the fewest loads between them.
  /// For the simulator alone: it needs to know the number of epochs, and does
  /// not suit early stopping or an elastic job.
  enum class EpochOrderChoice : std::uint8_t { kAsNumbered, kFewestLoads };
  EpochOrderChoice epoch_order = EpochOrderChoice::kAsNumbered;
};

struct SolarEpoch {
  std::uint64_t epoch = 0;  ///< Its number, from which its order is made.
  std::uint64_t loads = 0;  ///< GETs of all nodes.
  /// Summed over steps: the loads of the node with the most, less those of the
  /// node with the least. A synchronous job waits for these.
  std::uint64_t uneven_loads = 0;
  std::uint64_t largest_local_batch = 0;
};

/// Called with each node's samples in each step, if given; for tests.
using SeeStep =
    std::function<void(std::uint64_t epoch, std::uint64_t step,
                       const std::vector<std::vector<SampleId>>& dealt)>;

/// Errors:
///   kInvalidArgument  as Steps::make; more than 4,096 epochs to be ordered
///   kCancelled        `stop` fired
Result<std::vector<SolarEpoch>> simulate_solar(
    const SolarOptions& options, const SeeStep& see_step,
    const std::stop_token& stop = {});

}  // namespace leat
