// Asks a store for the sizes of many objects at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

struct StatAllOptions {
  std::size_t threads = 32;
  /// Hears now and then how many are done, on the calling thread. May be empty.
  std::function<void(std::uint64_t)> progress;
};

/// Size and ETag of each key, relative to `prefix`, in their order; several at
/// a time. Blocks.
///
/// Errors: as Store::stat, for the first key that failed; the rest is given up.
///           `doing` names it in words such as "row 3, field image".
Result<std::vector<ObjectInfo>> stat_all(
    Store& store, std::string_view prefix, std::span<const std::string> keys,
    const std::function<std::string(std::size_t)>& doing,
    const StatAllOptions& options, const std::stop_token& stop);

}  // namespace leat
