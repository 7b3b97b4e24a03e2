// From the times of steps under different conditions to where a step goes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The conditions of a run of the training; each adds something to the one
/// before it.
enum class Condition : std::uint8_t {
  kAlone,  ///< One process, batches replayed.
  kNode,   ///< All processes of one node, batches replayed.
  kNodes,  ///< All processes of all nodes, batches replayed.
  kWarm,   ///< Real batches, whose bytes come from memory.
  kCold,   ///< Real batches, whose bytes come from the store.
  kCount,
};

/// "alone", "node", "nodes", "warm" or "cold".
std::string_view to_string(Condition condition);

/// One run of the training: how long each measured step took, in seconds, by
/// rank. All ranks have equally many.
struct ProfiledRun {
  Condition condition = Condition::kAlone;
  std::vector<std::vector<double>> step_seconds;
};

/// The parts of a step.
enum class StepPart : std::uint8_t {
  kCompute,       ///< The time of one process alone: T(alone).
  kInterconnect,  ///< Exposed communication inside a node: T(node) − T(alone).
  kNetwork,       ///< Exposed communication of nodes: T(nodes) − T(node).
  kPreparation,   ///< Waiting for decode and transforms: T(warm) − T(nodes).
  kFetch,         ///< Waiting for bytes: T(cold) − T(warm).
  /// Preparation and fetch together, if there was no run between them.
  kInput,
  kCount,
};

/// "compute", "interconnect", …: the keys of reports.
std::string_view to_string(StepPart part);

/// Seconds, and the interval that holds them with the confidence asked for.
struct Estimate {
  double seconds = 0;
  double low = 0;
  double high = 0;
};

struct MeasuredPart {
  StepPart part = StepPart::kCompute;
  Estimate time;
  /// Its interval reaches zero: the stage is hidden behind the one before it,
  /// or not there. Removing that other stage may bring this one out.
  bool is_tie = false;
};

/// A step of the slowest rank. The parts sum to `step.seconds`.
struct StepParts {
  Estimate step;
  std::vector<MeasuredPart> parts;  ///< In the order of StepPart.
  /// Estimated time of a step in each condition that was run; else 0.
  std::array<double, static_cast<std::size_t>(Condition::kCount)> seconds{};
};

struct SplitOptions {
  double confidence = 0.95;
  std::uint32_t resamples = 2000;
  std::uint64_t seed = 0;
};

/// Splits a step by difference: DS-Analyzer's runs (Mohan et al., VLDB 2021,
/// section 4) and Stash's (Sharma et al., ICDCS 2023), over one base.
///
/// A condition's time is the median over its runs of the mean step of the
/// slowest rank. Times that fall where they cannot (noise) are levelled by
/// isotonic regression, so that no part is negative. Intervals are percentile
/// bootstraps over runs and, within a run, over steps (Efron 1979), the same
/// seed giving the same ones.
///
/// Without runs of kNode or kNodes there is no interconnect or network part;
/// without kWarm, kInput stands for preparation and fetch.
///
/// Errors:
///   kInvalidArgument  no run of kAlone or kCold, a run without steps, ranks
///                     with unequal numbers of steps, a time that is not
///                     positive
Result<StepParts> split_step(std::span<const ProfiledRun> runs,
                             const SplitOptions& options = {});

}  // namespace leat
