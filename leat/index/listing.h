// The data objects of a dataset.
#pragma once
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/index/selection.h"
#include "leat/store/store.h"

namespace leat {

/// All objects below `prefix` that `selection` selects, in byte order, with
/// keys relative to it. Blocks. `progress` is called with the number of objects
/// so far; it may be empty. Logs once in a process how many were left out.
///
/// Errors: as Store::list and select_objects().
Result<std::vector<ObjectInfo>> list_data(
    Store& store, std::string_view prefix,
    const std::function<void(std::uint64_t)>& progress, std::stop_token stop,
    const Selection& selection = {});

/// The `objects` that `selection` selects; their keys are already relative to
/// `place`. Logs once in a process how many were left out.
///
/// Errors: as select_objects().
Result<std::vector<ObjectInfo>> data_among(std::vector<ObjectInfo> objects,
                                           std::string_view place,
                                           const Selection& selection);

}  // namespace leat
