// Files beside shards that are not data: their indexes and statistics.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/store/store.h"

namespace leat {

/// The objects of a dataset, sorted by their names.
struct SortedObjects {
  Layout layout = Layout::kObjects;
  std::vector<ObjectInfo> data;  ///< In byte order of their keys.
  /// Only beside shards; in byte order of their keys.
  std::vector<ObjectInfo> companions;
};

/// Whether both are the same objects of the same sizes and ETags.
bool is_same(const SortedObjects& a, const SortedObjects& b);

/// Separates companions of shards from data. Companions are `.idx`, `.index`,
/// `.json` and `.parquet` files with the name of a shard ("00000.idx" and
/// "00000_stats.json" beside "00000.tar"), and up to kMostLooseCompanions with
/// other names ("shardindex.json"). Without shards, all objects are data.
///
/// Errors: as layout_of().
Result<SortedObjects> sort_objects(std::vector<ObjectInfo> objects);

/// More files of these kinds than this, not named like a shard, are a dataset
/// that contains a stray tar file.
inline constexpr std::size_t kMostLooseCompanions = 16;

/// The index of a shard's members beside it; null if there is none, or if its
/// kind of container uses none. For "a/b.c.tar", tries in this order:
/// "a/b.c.idx", "a/b.c.tar.idx", and the name that DALI's tool uses, "a/b.idx".
const ObjectInfo* member_index_of(const ObjectInfo& shard,
                                  const std::vector<ObjectInfo>& companions);

/// The `.json` companions not named like a shard: an index of all shards may be
/// among them.
std::vector<ObjectInfo> loose_jsons(const SortedObjects& objects);

}  // namespace leat
