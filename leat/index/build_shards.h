// Makes the catalogue of tar shards.
#pragma once
#include <stop_token>
#include <string_view>

#include "leat/base/result.h"
#include "leat/index/build.h"
#include "leat/index/companions.h"
#include "leat/store/store.h"

namespace leat {

/// Scans the shards, through their indexes where those fit, and makes their
/// catalogue. `now` is the progress so far. Blocks.
///
/// Errors: as build_catalogue().
Result<BuiltCatalogue> build_shards(Store& store, std::string_view prefix,
                                    const SortedObjects& objects,
                                    const IndexOptions& options, EtagKind etags,
                                    IndexProgress now,
                                    const std::stop_token& stop);

}  // namespace leat
