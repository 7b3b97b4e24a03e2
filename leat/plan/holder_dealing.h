// Steps dealt to the ranks whose caches hold the samples, as simulated.
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
  /// The policy of each rank's cache: belady or never_evict. The others keep
  /// samples that a rank reads once and does not hold for another.
  std::string policy = "belady";
  std::uint64_t capacity = 0;  ///< Capacity of the cache of each rank.
  CapacityUnit unit = CapacityUnit::kBytes;
  /// The cost of a sample in a cache; 0: it is never read, so not held either.
  /// Null: 1. Captured objects outlive the dealing.
  std::function<std::uint64_t(SampleId)> cost = nullptr;
  /// Deals what nobody holds so that later steps load evenly: see
  /// Locality::kBalance.
  bool is_balanced = false;
  /// The number of epochs, if known. Uses past them are told as none; the
  /// simulation does not depend on it, so a job may be made longer.
  std::uint64_t epochs = kNever;
};

/// One sample of a step.
struct DealtSample {
  std::uint64_t position = 0;  ///< Past N for padding.
  SampleId sample = {};
  std::uint32_t rank = 0;
  bool is_held = false;  ///< By the cache of `rank`, before it was read.
  /// When `rank` reads it again, if its cache keeps it, on a clock with epochs
  /// of kEpochTime; else kNever.
  AccessTime next_use = kNever;
};

/// Deals each whole step's samples to the ranks that hold them (SOLAR's remap;
/// Sun et al., VLDB 2023), as long as every rank gets as many as Steps says;
/// the others go to ranks with room. Other steps are dealt as Steps does, and
/// so is all of epoch 0 of a stream, whose later samples are not known when the
/// first are dealt.
///
/// Simulates which rank holds each sample, from epoch 0 on: the policies of W
/// caches, each of one rank, step by step over the reads of all ranks. A sample
/// is held by one rank at most; a sample that has to be read elsewhere is not
/// kept there. The result never depends on the real content of a cache, nor on
/// when anything was read. It is a function of the options, the epoch and the
/// position, so all ranks agree, and a job that goes on gets what it would have
/// got.
///
/// Cost: a step takes O(G log held), whichever rank asks; with `is_balanced`,
/// also O(G * W). If it does not stand at the step yet, seek() goes through all
/// steps before, from the job's first: the same for each of their samples.
/// Memory: 8 bytes a sample of the dataset, at most 36 a sample held (44 if
/// balanced), and 4 times W times the most samples that one cache could hold.
///
/// Threads: one at a time.
class HolderDealing {
 public:
  /// Stands at the beginning of epoch 0.
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

  /// Goes to `position` of `epoch`: next_step() is the step that begins there.
  /// At once if it stands there already.
  ///
  /// Errors:
  ///   kInvalidArgument  past the end of the epoch
  ///   kCancelled        `stop` fired; the next seek() goes on
  Result<void> seek(std::uint64_t epoch, std::uint64_t position,
                    const std::stop_token& stop);

  /// Deals the next step of the epoch, positions rising. Valid until the next
  /// call. REQUIRES: seek(), and a step is left.
  std::span<const DealtSample> next_step();

 private:
  class Simulation;
  explicit HolderDealing(std::unique_ptr<Simulation> simulation);
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace leat
