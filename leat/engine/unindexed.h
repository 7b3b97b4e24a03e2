// Tar shards that have no catalogue yet.
#pragma once
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/dataset.h"
#include "leat/engine/loader_options.h"
#include "leat/index/companions.h"
#include "leat/index/job_scan.h"
#include "leat/index/scan_log.h"

namespace leat {

/// Listed shards whose members are unknown.
struct UnindexedShards {
  std::string url;  ///< Without credentials.
  StoreOptions store_options;
  CatalogueOptions catalogue_options;
  SortedObjects objects;
  std::shared_ptr<Metrics> opening;  ///< See Dataset.
  /// With several ranks: the log in which one of them writes its findings for
  /// the others on its node. Null: this process does all the scanning itself.
  std::unique_ptr<ScanLog> log;
  /// With several ranks that share a board: each scans shards of its own. Null:
  /// see `log`. At most one of the two is there.
  std::unique_ptr<JobScan> job;
};

/// The data that a loader is made from.
using LoaderSource = std::variant<Dataset, UnindexedShards>;

/// Opens the data at `url` for a loader with these options. Shards without a
/// catalogue, at least some without an index beside them, are listed and left
/// for the first epoch of a stream (ShuffleChoice::kStream) to index. Anything
/// else is opened by open_dataset(). Blocks.
///
/// With several ranks, the first to come on each node, where local rank 0 has a
/// head start, lists and scans for all; the others wait until it has listed.
/// With `options.scans`, the first to come in the job lists for all, and each
/// rank scans shards of its own.
///
/// Errors: as open_dataset()
Result<LoaderSource> open_for_loader(std::string_view url,
                                     const StoreOptions& store,
                                     const CatalogueOptions& options,
                                     const LoaderOptions& loader,
                                     const Env& env,
                                     const std::stop_token& stop);

/// Identifies the objects of a dataset: the same for the same keys and sizes in
/// the same order, whether or not their members are known.
Hash128 listing_digest(const SortedObjects& objects);
Hash128 listing_digest(const Catalogue& catalogue);

/// For programs that read objects alone, as C++ does: Python finds the rows of
/// Parquet files and of shards with an index.json, and these are not samples.
///
/// Errors: kInvalidArgument: all objects are such files
Result<void> check_objects_are_samples(const LoaderSource& source,
                                       std::string_view url);

}  // namespace leat
