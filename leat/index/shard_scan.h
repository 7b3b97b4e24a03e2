// Finds the members of a tar shard in a store.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/tar/tar_scanner.h"
#include "leat/store/store.h"

namespace leat {

/// A shard and, if there is one, the index of its members beside it.
struct ShardToScan {
  ObjectInfo shard;
  std::optional<ObjectInfo> index;
};

struct ScannedShard {
  std::vector<TarMember> members;
  /// Why the index was of no use; empty if it was, or if there is none.
  std::string note;
};

/// Fills `into` with what lies in a shard from `offset` on.
using ReadShard = std::function<Result<void>(std::uint64_t offset,
                                             std::span<std::byte> into)>;

/// The members of a shard of `size_bytes`, in order, found by reading all
/// headers. Blocks as `read` does.
///
/// Errors: as `read` and TarScanner::feed.
Result<std::vector<TarMember>> scan_members(std::uint64_t size_bytes,
                                            const ReadShard& read);

/// The shard with the keys that a store below `prefix` knows.
ShardToScan in_store(std::string_view prefix, ShardToScan shard);

/// The members of a shard, in order: those that its index tells, if that fits,
/// else those found by reading all headers. Blocks.
///
/// An index fits if it can be parsed, the first and the last member it tells
/// are in the shard with that name and size, and the archive ends behind the
/// last. One that does not fit is a note, not an error: the shard itself is
/// right.
///
/// Errors: as Store::read and TarScanner::feed; each names the shard's URL.
Result<ScannedShard> scan_shard(Store& store, const ShardToScan& shard,
                                const std::stop_token& stop);
/// The same; if no index fits, headers are read by `read`.
Result<ScannedShard> scan_shard(Store& store, const ShardToScan& shard,
                                const ReadShard& read,
                                const std::stop_token& stop);

}  // namespace leat
