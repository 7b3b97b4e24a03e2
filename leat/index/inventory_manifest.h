// The manifest of an S3 Inventory: which files list a bucket, and how.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The positions of the columns. A bucket's inventory may lack some.
struct InventoryColumns {
  std::size_t count = 0;
  std::size_t key = 0;
  std::size_t size = 0;
  std::optional<std::size_t> etag;
  std::optional<std::size_t> is_latest;
  std::optional<std::size_t> is_delete_marker;
};

struct InventoryFile {
  std::string key;  ///< In the bucket to which the inventory was written.
  std::uint64_t size_bytes = 0;
};

struct InventoryManifest {
  std::string source_bucket;
  InventoryColumns columns;
  std::vector<InventoryFile> files;
};

/// Reads a `manifest.json`.
///
/// Errors:
///   kInvalidArgument  Parquet or ORC, or without sizes; says what to set
///   kCorrupt          anything that is not a manifest of an inventory
Result<InventoryManifest> parse_inventory_manifest(std::string_view json);

}  // namespace leat
