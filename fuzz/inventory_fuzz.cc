// Reads any bytes as the files of an S3 Inventory: the manifest, gzip, rows in
// pieces of any size. Kept keys must be below the prefix, once decoded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/index/gunzip.h"
#include "leat/index/inventory_manifest.h"
#include "leat/index/inventory_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text = leat::as_text(bytes);
  (void)leat::parse_inventory_manifest(text);  // Must return.
  const leat::InventoryColumns columns{.count = 3,
                                       .key = 0,
                                       .size = 1,
                                       .etag = 2,
                                       .is_latest = {},
                                       .is_delete_marker = {}};
  std::vector<leat::ObjectInfo> objects;
  leat::InventoryRows rows(columns, "", objects);
  const std::size_t piece = size == 0 ? 1 : data[0] % 64 + 1;
  for (std::size_t at = 0; at < size; at += piece) {
    if (!rows.feed(text.substr(at, piece))) return 0;
  }
  if (rows.finish() && objects.size() > size) std::abort();
  leat::Gunzip gunzip(
      [](std::string_view) -> leat::Result<void> { return {}; });
  for (std::size_t at = 0; at < size; at += piece) {
    if (!gunzip.feed(bytes.subspan(at, std::min(piece, size - at)))) return 0;
  }
  (void)gunzip.finish();
  return 0;
}
