// Scans many shards at once and hands them over in order.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>

#include "leat/base/result.h"
#include "leat/index/shard_scan.h"
#include "leat/store/store.h"

namespace leat {

/// Takes shard `index`; called in order, on the calling thread.
using TakeShard = std::function<Result<void>(std::size_t index, ScannedShard)>;

/// Scans `shards` on `threads` threads; their keys, and their indexes', are
/// relative to `prefix`.
/// Blocks. Results that wait for their turn are bounded: a thread runs at most
/// a few shards per thread ahead.
///
/// Errors: the first of scan_shard() and `take` in the order of shards.
Result<void> scan_all(Store& store, std::string_view prefix,
                      std::span<const ShardToScan> shards, std::size_t threads,
                      const TakeShard& take, const std::stop_token& stop);

}  // namespace leat
