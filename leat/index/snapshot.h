// Catalogues that are kept beside the data under their times.
#pragma once
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/index/build.h"
#include "leat/index/open_catalogue.h"
#include "leat/store/store.h"

namespace leat {

/// The key of the snapshot with this name: a time such as 20261126T024700Z, so
/// that names sort as their times do.
std::string snapshot_key(std::string_view prefix, std::string_view name);

/// Lists the data, and keeps the catalogue beside it under the time when the
/// listing ended. Unlike a published catalogue, one of files has their ETags:
/// a snapshot is for one place, and must not pass over a file that was written
/// again. Blocks.
///
/// Errors: as build_catalogue() and Store::write
Result<OpenedCatalogue> keep_snapshot(Store& store, std::string_view prefix,
                                      const IndexOptions& options,
                                      std::stop_token stop);

/// Opens a snapshot as it stands; a copy is kept in the user's cache. Nobody
/// looks whether the data has changed since, and reading an object whose size
/// or ETag differs fails. Blocks.
///
/// Errors:
///   kNotFound  there is no snapshot of that name
///   any of find_published()
Result<OpenedCatalogue> open_snapshot(Store& store, std::string_view prefix,
                                      std::string_view identity,
                                      std::string_view name, const Env& env,
                                      const std::stop_token& stop);

}  // namespace leat
