// Deals steps to the ranks whose caches hold the samples in a simulation.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/plan/cache_policy.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

/// All of it is the same on every rank, or their steps do not fit together.
struct HolderDealingOptions {
  std::uint64_t samples = 0;  ///< N.
  OrderOptions order = {};
  std::shared_ptr<const BlockMap> blocks = nullptr;  ///< For block shuffles.
  std::uint64_t global_batch = 0;                    ///< G.
  Tail tail = Tail::kKeep;
  std::uint32_t world_size = 1;  ///< W.
  /// The policy of each rank's cache: belady or never_evict. Other policies
  /// keep samples that a rank reads once and does not hold for another.
  std::string policy = "belady";
  std::uint64_t capacity = 0;  ///< Capacity of the cache of each rank.
  CapacityUnit unit = CapacityUnit::kBytes;
  /// The room of a sample in a cache; 0: it is never read, so it is not held.
  /// Null: 1. Captured objects must outlive the dealing.
  std::function<std::uint64_t(SampleId)> cost = nullptr;
  /// Deals samples that no rank holds so that later steps load evenly: see
  /// Locality::kBalance.
  bool is_balanced = false;
  /// The number of epochs, if known. Later uses are reported as none; the
  /// simulation does not depend on it, so a job may be extended.
  std::uint64_t epochs = kNever;
};

/// One sample of a step.
struct DealtSample {
  std::uint64_t position = 0;  ///< N or more for padding.
  SampleId sample = {};
  std::uint32_t rank = 0;
  bool is_held = false;  ///< By the cache of `rank`, before the read.
  /// When `rank` reads it again, if its cache keeps it, on a clock with epochs
  /// of kEpochTime; otherwise kNever.
  AccessTime next_use = kNever;
};

/// Deals each whole step's samples to the ranks that hold them (SOLAR's remap;
/// Sun et al., VLDB 2023), as long as every rank gets as many as Steps says;
/// the others go to ranks with room. Other steps are dealt as in Steps, and so
/// is all of epoch 0 of a stream, whose later samples are unknown when the
/// first are dealt.
///
/// Simulates which rank holds each sample, from epoch 0 on: the policies of W
/// caches, one for each rank, step by step over the reads of all ranks. A
/// sample is held by at most one rank; a rank that has to read another's
/// sample does not keep it. The result never depends on the real content of a
/// cache, nor on when anything was read. It depends only on the options, the
/// epoch and the position, so all ranks agree, and a resumed job gets the
/// same.
///
/// Cost: a step takes O(G log held) on any rank; with `is_balanced`, also O(G *
/// W). If it is not at the step yet, seek() goes through all steps before it,
/// from the job's first, at the same cost for each of their samples. Memory: 8
/// bytes for each sample of the dataset, at most 36 for each held sample (44 if
/// balanced), and 4 times W times the most samples that one cache could hold.
///
/// Threads: one at a time.
class HolderDealing {
 public:
  /// Begins at epoch 0.
  ///
  /// Errors:
  ///   kInvalidArgument    no ranks, another policy, more than
  ///                       CachePolicySpec::kMaxSamples; as Steps::make
  ///   kResourceExhausted  the tables would take more than kMaxTableBytes
  static Result<std::unique_ptr<HolderDealing>> make(
      const HolderDealingOptions& options);
  ~HolderDealing();

  /// The tables of a simulation, by the number of samples held.
  static constexpr std::uint64_t kMaxTableBytes = std::uint64_t{4} << 30;

  /// Moves to `position` of `epoch`, so that next_step() deals the step that
  /// begins there. Returns immediately if it is there already.
  ///
  /// Errors:
  ///   kInvalidArgument  past the end of the epoch
  ///   kCancelled        `stop` fired; the next seek() goes on
  Result<void> seek(std::uint64_t epoch, std::uint64_t position,
                    const std::stop_token& stop);

  /// Deals the next step of the epoch, in ascending positions. Valid until the
  /// next call. REQUIRES: seek() was called, and a step is left.
  std::span<const DealtSample> next_step();

 private:
  class Simulation;
  explicit HolderDealing(std::unique_ptr<Simulation> simulation);
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace leat
