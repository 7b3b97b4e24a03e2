// Simulates a job with several caches: the table that `leat plan URL` prints.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/simulator.h"

namespace leat {

/// The size of a sample or block that is read.
struct ReadSize {
  std::uint64_t bytes = 0;
  std::uint64_t cost = 0;  ///< The room that it takes in a tier.
  std::uint32_t requests = 1;
};

struct SweepOptions {
  std::uint64_t samples = 0;
  std::uint64_t objects = 0;  ///< 0: as many as samples.
  ReadUnit unit = ReadUnit::kSample;
  /// The size of a unit, by its number. Called for the simulated units.
  std::function<ReadSize(std::uint64_t unit)> read_size = {};
  OrderOptions order = {};
  std::shared_ptr<const BlockMap> blocks = nullptr;
  Tail tail = Tail::kDrop;
  std::uint64_t global_batch = 0;
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  std::uint64_t epochs = 1;
  std::uint64_t ram_bytes = 0;   ///< For the cache of each node. 0: none.
  std::uint64_t disk_bytes = 0;  ///< The same.
  TimeOptions times = {};
  std::vector<std::string> only = {};  ///< The names of rows; empty: all.
};

struct SweepRow {
  std::string name;  ///< "belady", "never_evict + peers", "peers", "belady x2".
  /// At full size: the report's options, without the sizes of its reads.
  SimulationOptions options;
  SimulationReport report;  ///< The report of all epochs.
};

/// No cache; each policy with CachePolicyKind::is_swept at the requested size;
/// peers, by CoorDL's partition and as servers that get the memory; Belady's at
/// half, twice and four times that size.
///
/// A dataset larger than 50,000 samples (or 20 steps; for pieces of shards, 20
/// windows or a million samples) is simulated with as many of its own samples,
/// drawn at random, with caches in proportion, and epochs past the tenth repeat
/// the tenth: the hits of policies depend on proportions. Counts and seconds
/// are those of the full job.
///
/// Errors: as simulate()
/// REQUIRES: read_size; blocks where the order has windows.
Result<std::vector<SweepRow>> sweep(const SweepOptions& options,
                                    const std::stop_token& stop = {});

}  // namespace leat
