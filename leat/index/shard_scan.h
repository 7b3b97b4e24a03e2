// Finds the members of a shard in a store.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/index/container.h"
#include "leat/store/store.h"

namespace leat {

/// A shard and, if there is one, the index of its members beside it.
struct ShardToScan {
  ObjectInfo shard;
  std::optional<ObjectInfo> index;
};

struct ScannedShard {
  std::vector<Member> members;
  /// Why the index was of no use; empty if it was, or if there is none.
  std::string note;
};

/// The shard with the keys that a store below `prefix` knows.
ShardToScan in_store(std::string_view prefix, ShardToScan shard);

/// The members of a shard, in order: those that its index tells, if that fits,
/// else those found by reading all headers. Blocks.
///
/// An index that does not fit is a note, not an error: the shard itself is
/// right.
///
/// Errors: as Store::read and MemberScanner::feed; each names the shard's URL.
Result<ScannedShard> scan_shard(Store& store, const ShardToScan& shard,
                                const std::stop_token& stop);
/// The same; if no index fits, headers are read by `read`.
Result<ScannedShard> scan_shard(Store& store, const ShardToScan& shard,
                                const ReadShard& read,
                                const std::stop_token& stop);

}  // namespace leat
