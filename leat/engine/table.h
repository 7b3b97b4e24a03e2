// A dataset whose samples are the rows of a table that is read once.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/dataset.h"
#include "leat/engine/stores.h"
#include "leat/index/manifest_builder.h"
#include "leat/index/open_catalogue.h"

namespace leat {

/// The content of a table.
struct TableRows {
  /// By the numbers that the rows name; at least one.
  std::vector<std::string> places;
  ManifestBuilder rows;
};

/// Reads a table. Errors: any
using ReadTable = std::function<Result<TableRows>()>;

/// The rows of a table as samples. The catalogue and the places of its objects
/// are kept in the user's cache under `description`, which has to identify the
/// version of the table and how it is read. `read` is called if none is kept,
/// on this thread, in one process of this node. Blocks.
///
/// Errors: as open_dataset(), build_from_manifest() and `read`
Result<Dataset> open_table(const StoreOptions& store, const ReadTable& read,
                           std::string_view description,
                           const CatalogueOptions& options, const Env& env,
                           const std::stop_token& stop);

}  // namespace leat
