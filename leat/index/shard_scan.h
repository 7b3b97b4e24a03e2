// Reads the headers of a tar shard in a store.
#pragma once
#include <stop_token>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/tar/tar_scanner.h"
#include "leat/store/store.h"

namespace leat {

/// The members of a shard, in order. Blocks.
///
/// Errors: as Store::read and TarScanner::feed; each names the shard's URL.
Result<std::vector<TarMember>> scan_shard(Store& store, const ObjectInfo& shard,
                                          std::stop_token stop);

}  // namespace leat
