// The contents of a bucket as S3 Inventory recorded them, without a listing.
#pragma once
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// The place of an inventory: its manifest.
struct InventoryPlace {
  Store& store;
  std::string manifest_key;
};

/// The objects below `prefix` of `bucket`, in byte order, with keys relative to
/// the prefix; latest versions only. Blocks.
///
/// Reads CSV, compressed or not. On s3:// its files are where the manifest
/// says; in a folder, beside the manifest or in `data/` beside it. Objects
/// written or deleted since then are unknown.
///
/// Errors: as parse_inventory_manifest(), InventoryRows and Store::read, each
/// naming the file; kInvalidArgument if it belongs to another bucket (an empty
/// `bucket` is not compared)
Result<std::vector<ObjectInfo>> read_inventory(const InventoryPlace& place,
                                               std::string_view bucket,
                                               std::string_view prefix,
                                               const std::stop_token& stop);

}  // namespace leat
