// Lists a store that lists in no order.
#pragma once
#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/list_all.h"
#include "leat/store/store.h"

namespace leat {

/// Like list_all(), but lists page after page: where any page may hold any key,
/// the range of keys cannot be divided.
///
/// Errors: as Store::list; kCancelled if `stop` fired
///   kCorrupt  a page brings nothing new, or keys outside `prefix`
Result<std::vector<ObjectInfo>> list_unsorted(
    Store& store, std::string_view prefix,
    const std::function<void(const ListProgress&)>& progress,
    const std::stop_token& stop);

}  // namespace leat
