// One job under several caches: the table that `leat plan URL` prints.
#pragma once
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/simulator.h"

namespace leat {

struct SweepOptions {
  std::uint64_t samples = 0;
  std::uint64_t total_bytes =
      0;  ///< Of all samples: their mean stands for each.
  std::uint64_t seed = 0;
  std::uint64_t global_batch = 0;
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  std::uint64_t epochs = 1;
  std::uint64_t ram_bytes = 0;   ///< Of each node, for the cache. 0: none.
  std::uint64_t disk_bytes = 0;  ///< The same.
  TimeOptions times = {};
};

struct SweepRow {
  std::string name;           ///< "belady", "never_evict + peers", "belady x2".
  SimulationOptions options;  ///< At full size: what the report is of.
  SimulationReport report;    ///< Of all epochs.
};

/// No cache; each policy at the size that was asked for; peers; Belady's at
/// half, twice and four times that size.
///
/// A dataset larger than 50,000 samples (or 20 steps) stands in a smaller one
/// with caches in proportion, and epochs past the tenth repeat the tenth: what
/// policies hit depends on proportions. Counts and seconds are of the full job.
///
/// Errors: as simulate()
Result<std::vector<SweepRow>> sweep(const SweepOptions& options,
                                    const std::stop_token& stop = {});

}  // namespace leat
