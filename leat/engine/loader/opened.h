// The base of a loader: its stores, cache, memory and threads.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/caches.h"
#include "leat/engine/loader/job.h"
#include "leat/engine/loader/schedule.h"
#include "leat/engine/loader_stats.h"
#include "leat/engine/quarantine.h"
#include "leat/engine/stores.h"
#include "leat/engine/unindexed.h"
#include "leat/metrics/metrics.h"
#include "leat/pipeline/run_context.h"
#include "leat/runtime/executor.h"
#include "leat/runtime/limits.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/layers/read_ahead_store.h"

namespace leat {

/// The memory for reading a stream's shards while they are indexed.
struct StreamMemory {
  std::uint64_t ahead_bytes = 0;  ///< For reading ahead; 0: others do that.
  std::uint64_t queue_bytes = 0;  ///< For what the cache has yet to write.
};

/// Runs get half of the memory; reading ahead gets the other half on the rank
/// that scans. A cache gets half of that for its write queue, because pieces
/// that are already there all arrive together.
StreamMemory stream_memory(const Job& job, const UnindexedShards& shards,
                           std::uint64_t memory_bytes);

/// Opened once, then constant until end(); each part has its own lock. Members
/// are destroyed from the last to the first.
struct Opened {
  std::shared_ptr<Metrics> metrics;
  LearnedShapes shapes;
  PartBytes part_bytes;
  std::atomic<bool> said_no_room = false;      ///< See RunContext.
  std::atomic<bool> said_wrong_bytes = false;  ///< See RunContext.
  std::unique_ptr<Quarantine> quarantine;
  std::unique_ptr<MemoryBudget> budget;
  /// The part of the memory for pictures that decoders hold; null: there are
  /// none to decode.
  std::unique_ptr<MemoryBudget> decode_room;
  std::unique_ptr<SlotPool> slots;
  std::vector<ScratchRef> scratch;
  std::unique_ptr<Executor> executor;
  CacheGround cache_ground;
  OpenedStore store;  ///< Its threads may still be leaving the executor.
  /// Part of `store`, below its caches; null: the data had a catalogue.
  ReadAheadStore* ahead = nullptr;
  Share tiers;  ///< The bytes that this rank may write to each existing tier.
  std::string shared_cache;       ///< Names the sharing jobs; empty: none.
  std::uint64_t cache_bytes = 0;  ///< The part of them for records.

  /// Opens the stores, from the driver to the one that is read from. Completes
  /// `job`: its open cache options, and the ranks that read from it.
  ///
  /// Errors: as open_store_of(), choose_cache(), wrap_in_cache() and placement
  Result<void> open_stores(Job& job, const Schedule& schedule,
                           const UnindexedShards* shards,
                           const RankLimits& mine, std::size_t most_in_flight,
                           const Limits& limits, const Env& env);
  /// Learns which samples earlier runs passed over.
  void open_quarantine(const Job& job, const Schedule& schedule,
                       const Env& env);
  /// Starts the memory and threads that hold and decode samples.
  void open_memory(const Job& job, const RankLimits& mine,
                   std::size_t most_threads);
  /// Ends every thread. REQUIRES: no run is left.
  void end();

  /// The times of its threads, including those in the user's functions.
  ThreadTimes thread_times(const Job& job) const;

 private:
  void open_ahead(const Job& job, const UnindexedShards& shards,
                  std::uint64_t memory_bytes);
  Result<void> open_cache(Job& job, const Schedule& schedule,
                          const Limits& limits, const Env& env);
};

/// Everything that a run over a catalogue borrows. All of it outlives the run.
RunContext context_over(const Job& job, Opened& opened, DecodedForm* decoded,
                        const Catalogue& catalogue,
                        const std::vector<DeliveredField>& fields,
                        std::shared_ptr<const BlockMap> blocks,
                        MemoryBudget& budget);

/// The homes of a stream's samples, if ranks deal them by shard; else null.
/// `first_shard` is the number of the catalogue's first shard in the dataset.
std::shared_ptr<const ShardHomes> shard_homes_of(
    const Job& job, const Catalogue& catalogue,
    std::shared_ptr<const BlockMap> blocks, std::uint64_t first_shard);

}  // namespace leat
