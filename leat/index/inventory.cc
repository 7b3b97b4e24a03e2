#include "leat/index/inventory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/gunzip.h"
#include "leat/index/inventory_manifest.h"
#include "leat/index/inventory_rows.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostManifestBytes = 64 << 20;
constexpr std::uint64_t kPieceBytes = 8 << 20;

std::string_view folder_of(std::string_view key) {
  const std::size_t slash = key.rfind('/');
  return slash == std::string_view::npos ? "" : key.substr(0, slash);
}

/// The store's entry for a file of the inventory.
Result<ObjectInfo> find_file(const InventoryPlace& place,
                             const std::string& key,
                             const std::stop_token& stop) {
  if (place.store.url_of("").starts_with("s3://")) {
    return place.store.stat(key, stop);
  }
  const std::string_view folder = folder_of(place.manifest_key);
  const std::string name = key.substr(key.rfind('/') + 1);
  auto found = place.store.stat(key_in_store(folder, name), stop);
  if (found) return found;
  return place.store.stat(key_in_store(folder, "data/" + name), stop);
}

Result<void> read_pieces(Store& store, const ObjectInfo& file,
                         const Gunzip::Take& take,
                         const std::stop_token& stop) {
  Buffer piece(std::min(file.size_bytes, kPieceBytes));
  for (std::uint64_t at = 0; at < file.size_bytes; at += kPieceBytes) {
    ReadRequest request;
    request.object = {.key = file.key, .etag = file.etag};
    request.offset = at;
    request.into =
        piece.span().first(std::min(kPieceBytes, file.size_bytes - at));
    const auto into = request.into;
    LEAT_TRY_VOID(read_range(store, std::move(request), stop));
    LEAT_TRY_VOID(take(as_text(into)));
  }
  return {};
}

Result<void> read_file(Store& store, const ObjectInfo& file,
                       InventoryRows& rows, const std::stop_token& stop) {
  const auto take_rows = [&](std::string_view text) { return rows.feed(text); };
  if (!file.key.ends_with(".gz")) {
    LEAT_TRY_VOID(read_pieces(store, file, take_rows, stop));
    return rows.finish();
  }
  Gunzip gunzip(take_rows);
  LEAT_TRY_VOID(read_pieces(
      store, file,
      [&](std::string_view packed) { return gunzip.feed(as_bytes(packed)); },
      stop));
  LEAT_TRY_VOID(gunzip.finish());
  return rows.finish();
}

Result<InventoryManifest> read_manifest(const InventoryPlace& place,
                                        std::string_view bucket,
                                        const std::stop_token& stop) {
  LEAT_TRY(const Buffer text, read_object(place.store, place.manifest_key,
                                          kMostManifestBytes, stop));
  auto manifest = parse_inventory_manifest(as_text(text.span()));
  if (manifest && !bucket.empty() && manifest->source_bucket != bucket) {
    return invalid("it is the inventory of bucket '{}', not of '{}'",
                   manifest->source_bucket.substr(0, 63), bucket);
  }
  return manifest;
}

}  // namespace

Result<std::vector<ObjectInfo>> read_inventory(const InventoryPlace& place,
                                               std::string_view bucket,
                                               std::string_view prefix,
                                               const std::stop_token& stop) {
  auto manifest = read_manifest(place, bucket, stop);
  if (!manifest) {
    return std::move(manifest).error().while_doing(
        place.store.url_of(place.manifest_key));
  }
  const std::string below = key_in_store(prefix, "");
  std::vector<ObjectInfo> objects;
  InventoryRows rows(manifest->columns, below, objects);
  for (const InventoryFile& file : manifest->files) {
    const std::string url = place.store.url_of(file.key);
    auto found = find_file(place, file.key, stop);
    if (!found) return std::move(found).error().while_doing(url);
    if (found->size_bytes != file.size_bytes) {
      return corrupt("{} has {} bytes, and the manifest says {}", url,
                     found->size_bytes, file.size_bytes);
    }
    if (auto read = read_file(place.store, *found, rows, stop); !read) {
      return std::move(read).error().while_doing(url);
    }
  }
  std::ranges::sort(objects, {}, &ObjectInfo::key);
  const auto twice = std::ranges::adjacent_find(objects, {}, &ObjectInfo::key);
  if (twice != objects.end()) {
    return invalid(
        "the inventory has '{}' twice: it lists all versions without IsLatest; "
        "add that field, or list current versions alone",
        twice->key);
  }
  return objects;
}

}  // namespace leat
