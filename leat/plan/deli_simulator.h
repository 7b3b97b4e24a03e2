// DELI's prefetcher as its authors built it, for checks against their
// measurements.
#pragma once
#include <cstdint>
#include <stop_token>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

/// The parameters of DELI, described by Krichevsky, St Louis, Guo: "Quantifying
/// and Improving Performance of Distributed Deep Learning with Cloud Storage",
/// IC2E 2021, and its repository cake-lab/DELI. One process reads sample after
/// sample. Its sampler queues up indices and asks a server to fetch their
/// samples into a FIFO cache, whose size is counted in items.
struct DeliOptions {
  std::uint64_t fetch_size = 1024;      ///< F, as in FetchAhead: a request.
  std::uint64_t queue_threshold = 0;    ///< T.
  std::uint64_t capacity_items = 2048;  ///< C.
  std::uint64_t batch = 512;
  double compute_seconds = 0;  ///< A training step, for each batch.

  // The four constants of a machine and its bucket.
  double get_seconds = 0;    ///< A miss: one GET that is waited for.
  double hit_seconds = 0;    ///< A look-up with a hit.
  double fetch_seconds = 0;  ///< A request to the server, whatever it asks for.
  double fetch_sample_seconds = 0;  ///< Added for each sample that it fetches.
};

/// The counts of one epoch.
struct DeliEpoch {
  std::uint64_t reads = 0;
  std::uint64_t misses = 0;   ///< GETs of the training process.
  std::uint64_t fetched = 0;  ///< GETs of the server.
  double loading_seconds = 0;
};

/// Simulates one node over `epochs`: the samples it reads in each, in order.
///
/// A batch's indices are drawn before its samples are read, as in PyTorch's
/// batch sampler; each draw requests at most one fetch. A fetch skips samples
/// that are cached when it is requested, and inserts the others together when
/// all have arrived. A fetch that is requested during another waits for it, as
/// the authors' measurements with thresholds show (bench/deli_data.py). A miss
/// is not inserted. Time advances only in `get_seconds`, `hit_seconds` and
/// `compute_seconds`.
///
/// Errors:
///   kInvalidArgument  a fetch size, capacity or batch of 0; seconds below 0
///   kCancelled        `stop` fired
Result<std::vector<DeliEpoch>> simulate_deli(
    const DeliOptions& options,
    const std::vector<std::vector<SampleId>>& epochs,
    const std::stop_token& stop = {});

}  // namespace leat
