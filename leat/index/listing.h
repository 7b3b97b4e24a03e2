// The data objects of a dataset.
#pragma once
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// All objects below `prefix` that are not hidden, in byte order, their keys
/// relative to it. Blocks. `progress` hears the number of objects so far; it
/// may be empty.
///
/// Errors: as Store::list; kNotFound if there are none.
Result<std::vector<ObjectInfo>> list_data(
    Store& store, std::string_view prefix,
    const std::function<void(std::uint64_t)>& progress, std::stop_token stop);

/// Those of `objects`, whose keys are relative already, that are data.
///
/// Errors: kNotFound if there are none.
Result<std::vector<ObjectInfo>> data_among(std::vector<ObjectInfo> objects);

}  // namespace leat
