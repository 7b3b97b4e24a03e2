// The index of a dataset's shards as wids writes it, a JSON file.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// A shard that a shard list names.
struct ListedShard {
  std::string name;  ///< The last part of its URL.
  std::uint64_t size_bytes = 0;
  std::uint64_t samples = 0;
};

/// Reads the output of `wids-index create`: an object with "wids_version" 1 and
/// a "shardlist" of objects with "url", "filesize" and "nsamples". Nullopt for
/// anything else.
///
/// Errors: kCorrupt for what says it is of wids and cannot be read as that.
Result<std::optional<std::vector<ListedShard>>> parse_shard_list(
    std::string_view text);

/// A note for the user if a list does not fit the shards that are there; empty
/// if it does. The bucket is right: the list has no offsets, so every shard is
/// looked into anyhow. `samples` are those found, one count for each shard.
/// REQUIRES: samples.size() == shards.size().
std::string differences(std::span<const ListedShard> list,
                        std::span<const ObjectInfo> shards,
                        std::span<const std::uint64_t> samples);

}  // namespace leat
