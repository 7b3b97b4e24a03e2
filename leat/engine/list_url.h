// Lists a folder by its URL.
#pragma once
#include <stop_token>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/engine/stores.h"
#include "leat/store/store.h"

namespace leat {

/// All objects below a folder, hidden ones too, in byte order, with keys
/// relative to it; ETags if the store tells versions apart by them. Blocks.
///
/// Errors: as open_store() and list_all()
Result<std::vector<ObjectInfo>> list_url(std::string_view url,
                                         const StoreOptions& options,
                                         const Env& env, std::stop_token stop);

}  // namespace leat
