// Reads an S3 Inventory, given by its URL, instead of listing.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/stores.h"

namespace leat {

/// The function for IndexOptions::objects: returns the objects below a prefix,
/// in byte order, their keys relative to it. Blocks; each call reads the
/// inventory.
using FindObjects =
    std::function<Result<std::vector<ObjectInfo>>(std::stop_token)>;

/// Finds the objects of `dataset` in the inventory whose manifest.json is at
/// `manifest_url`: a URL like a dataset's, or a path. Sends no request yet.
///
/// Lifetime: the result may outlive `dataset`.
/// Errors: as open_store(); later as read_inventory()
Result<FindObjects> objects_of_inventory(std::string_view manifest_url,
                                         const OpenedStore& dataset,
                                         const StoreOptions& options,
                                         const Env& env);

/// Identifies the version of the inventory: its URL and its manifest's ETag, in
/// one line. Blocks. Errors: as open_store() and Store::stat
Result<std::string> version_of_inventory(std::string_view manifest_url,
                                         const StoreOptions& options,
                                         const Env& env,
                                         const std::stop_token& stop);

}  // namespace leat
