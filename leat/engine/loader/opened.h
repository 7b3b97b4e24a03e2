// A loader's ground: its stores, its cache, memory and threads.
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
#include "leat/engine/stores.h"
#include "leat/engine/unindexed.h"
#include "leat/metrics/metrics.h"
#include "leat/pipeline/run_context.h"
#include "leat/runtime/executor.h"
#include "leat/runtime/limits.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/layers/read_ahead_store.h"

namespace leat {

/// How the shards of a stream are read while they are indexed.
struct StreamMemory {
  std::uint64_t ahead_bytes = 0;  ///< For what is read ahead; 0: others do.
  std::uint64_t queue_bytes = 0;  ///< For what the cache has yet to write.
};

/// Half of the memory is for runs, the other half for what is read ahead, by
/// who scans; with a cache a half of it for what that has yet to write: pieces
/// that are there already come all at once.
StreamMemory stream_memory(const Job& job, const UnindexedShards& shards,
                           std::uint64_t memory_bytes);

/// Opened once, and then constant until end(); each part has a lock of its own.
/// Members are destroyed from the last to the first.
struct Opened {
  std::shared_ptr<Metrics> metrics;
  LearnedShapes shapes;
  PartBytes part_bytes;
  std::unique_ptr<MemoryBudget> budget;
  std::unique_ptr<SlotPool> slots;
  std::vector<ScratchRef> scratch;
  std::unique_ptr<Executor> executor;
  CacheGround cache_ground;
  OpenedStore store;  ///< Its threads may still be leaving the executor.
  /// In `store`, below its caches; null: there was a catalogue.
  ReadAheadStore* ahead = nullptr;
  Share tiers;  ///< Bytes that this rank may write to each there is.
  std::string shared_cache;  ///< Names the jobs that share it; empty: none do.
  std::uint64_t cache_bytes = 0;  ///< Records may take so many of the cache.

  /// Opens the stores, from what sends requests to what is read from. Completes
  /// `job`: what its cache left open, and who reads from it.
  ///
  /// Errors: as open_store_of(), choose_cache(), wrap_in_cache() and placement
  Result<void> open_stores(Job& job, const Schedule& schedule,
                           const UnindexedShards* shards,
                           const RankLimits& mine, std::size_t most_in_flight,
                           const Limits& limits, const Env& env);
  /// Starts what holds and decodes samples.
  void open_memory(const RankLimits& mine, std::size_t most_threads);
  /// Ends every thread. REQUIRES: no run is left.
  void end();

  /// The times of its threads, with those of functions of the user's.
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

}  // namespace leat
