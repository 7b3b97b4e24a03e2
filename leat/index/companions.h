// Files beside tar shards that are no data: their indexes and statistics.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/store/store.h"

namespace leat {

/// The objects of a dataset, told apart by their names.
struct SortedObjects {
  Layout layout = Layout::kObjects;
  std::vector<ObjectInfo> data;  ///< In byte order of their keys.
  /// Beside shards alone; in byte order of their keys.
  std::vector<ObjectInfo> companions;
};

/// Whether both are the same objects of the same sizes and ETags.
bool is_same(const SortedObjects& a, const SortedObjects& b);

/// Tells companions of shards from data. Companions are `.idx`, `.index`,
/// `.json` and `.parquet` files with the name of a shard ("00000.idx" and
/// "00000_stats.json" beside "00000.tar"), and up to kMostLooseCompanions with
/// other names ("shardindex.json"). Without shards, all objects are data.
///
/// Errors: as layout_of().
Result<SortedObjects> sort_objects(std::vector<ObjectInfo> objects);

/// More files of these kinds than this, called as no shard is, are a dataset
/// that a tar file strayed into.
inline constexpr std::size_t kMostLooseCompanions = 16;

/// The index of a shard's members beside it; null if there is none. Tried in
/// this order for "a/b.c.tar": "a/b.c.idx", "a/b.c.tar.idx", and what DALI's
/// tool names it, "a/b.idx".
const ObjectInfo* member_index_of(const ObjectInfo& shard,
                                  const std::vector<ObjectInfo>& companions);

/// The `.json` companions that are called as no shard is: an index of all
/// shards may be among them.
std::vector<ObjectInfo> loose_jsons(const SortedObjects& objects);

}  // namespace leat
