#include "leat/engine/inventory_source.h"

#include <memory>
#include <string>
#include <utility>

#include "leat/dataset/catalogue.h"
#include "leat/index/inventory.h"
#include "leat/store/url.h"

namespace leat {
namespace {

/// Empty for a store that is not an S3 bucket.
std::string bucket_of(const OpenedStore& store) {
  const auto url = parse_url(store.url);
  return url && url->scheme == "s3" ? url->authority : "";
}

}  // namespace

Result<FindObjects> objects_of_inventory(std::string_view manifest_url,
                                         const OpenedStore& dataset,
                                         const StoreOptions& options,
                                         const Env& env) {
  const ObjectUrl place = split_object_url(manifest_url);
  LEAT_TRY(OpenedStore opened, open_store(place.folder, options, env, nullptr));
  const std::string key = key_in_store(opened.prefix, place.name);
  return FindObjects(
      [inventory = std::make_shared<const OpenedStore>(std::move(opened)), key,
       bucket = bucket_of(dataset),
       prefix = dataset.prefix](const std::stop_token& stop) {
        return read_inventory({.store = *inventory->store, .manifest_key = key},
                              bucket, prefix, stop);
      });
}

Result<std::string> version_of_inventory(std::string_view manifest_url,
                                         const StoreOptions& options,
                                         const Env& env,
                                         const std::stop_token& stop) {
  const ObjectUrl place = split_object_url(manifest_url);
  LEAT_TRY(const OpenedStore opened,
           open_store(place.folder, options, env, nullptr));
  LEAT_TRY(const ObjectInfo manifest,
           opened.store->stat(key_in_store(opened.prefix, place.name), stop));
  Hasher128 hasher;
  hasher.update(as_bytes(manifest_url));
  hasher.update(as_bytes(manifest.etag));
  return hasher.digest().hex();
}

}  // namespace leat
