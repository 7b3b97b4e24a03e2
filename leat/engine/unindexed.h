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
#include "leat/index/scan_log.h"

namespace leat {

/// Listed shards whose members nobody knows.
struct UnindexedShards {
  std::string url;  ///< Without credentials.
  StoreOptions store_options;
  CatalogueOptions catalogue_options;
  SortedObjects objects;
  std::shared_ptr<Metrics> opening;  ///< As Dataset has it.
  /// With several ranks: the log in which one of them writes its findings, for
  /// the others of its node. Null: this process finds everything by itself.
  std::unique_ptr<ScanLog> log;
};

/// The source that a loader is made of.
using LoaderSource = std::variant<Dataset, UnindexedShards>;

/// Opens what is at `url` for a loader with these options. Shards without a
/// catalogue, some of them without an index beside it, are listed and left for
/// the first epoch of a stream (ShuffleChoice::kStream) to index. All else is
/// open_dataset(). Blocks.
///
/// With several ranks, the first of each node to come, local rank 0 with a head
/// start, lists and scans for them all; the others wait until it has listed.
///
/// Errors: as open_dataset()
Result<LoaderSource> open_for_loader(std::string_view url,
                                     const StoreOptions& store,
                                     const CatalogueOptions& options,
                                     const LoaderOptions& loader,
                                     const Env& env,
                                     const std::stop_token& stop);

/// Says which objects a dataset consists of: the same for the same keys and
/// sizes in the same order, whether their members are known or not.
Hash128 listing_digest(const SortedObjects& objects);
Hash128 listing_digest(const Catalogue& catalogue);

}  // namespace leat
