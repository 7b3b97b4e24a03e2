// Lists everything under a prefix, with many requests in parallel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

struct ListProgress {
  std::uint64_t objects = 0;  ///< Found so far.
  std::uint64_t lists = 0;    ///< Requests answered so far.
};

struct ListAllOptions {
  /// Requests open in parallel, each on a thread of its own that ends with the
  /// call.
  std::size_t threads = 16;
  /// Hears of progress now and then, on the calling thread. May be empty.
  std::function<void(const ListProgress&)> progress;
};

/// Every object whose key begins with `prefix`, in byte order, each once.
/// Blocks.
///
/// A store answers a page at a time, so a sequential listing takes as many
/// round trips as there are pages. Here, a worker with nothing to list takes
/// over a part of another's rest: the range of keys is split at the names of
/// folders if they are known, otherwise at guessed keys (split_keys.h). A guess
/// that finds nothing costs one request and narrows the next. A prefix that
/// fits on a page takes one request. A store that lists in an order of its own
/// is listed page after page.
///
/// A store that lists in no order (ListPage::is_sorted) is listed page after
/// page: see list_unsorted.h.
///
/// Skips empty objects whose key ends in '/' (folder markers), and objects in a
/// folder `.leat` (our own). Objects written or deleted meanwhile may or may
/// not be listed.
///
/// Threads:  any; `options.progress` runs on the caller's.
/// Errors: as Store::list; kCancelled if `stop` fired
///   kCorrupt  the store lists out of byte order and does not say so
Result<std::vector<ObjectInfo>> list_all(Store& store, std::string_view prefix,
                                         const ListAllOptions& options,
                                         std::stop_token stop);

/// True for what a listing leaves out: see list_all().
bool is_passed_over(const ObjectInfo& object, std::size_t prefix_size);

}  // namespace leat
