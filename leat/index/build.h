// Makes the catalogue of a store's contents.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/selection.h"
#include "leat/store/store.h"

namespace leat {

/// The progress of indexing.
struct IndexProgress {
  std::uint64_t objects = 0;       ///< Listed so far.
  std::uint64_t shards_done = 0;   ///< Scanned so far.
  std::uint64_t shards_total = 0;  ///< 0 until the listing is complete.
  std::uint64_t samples = 0;       ///< Found so far.
  std::uint64_t bytes_read = 0;    ///< For checksums, at the end.
  std::uint64_t bytes_total = 0;   ///< 0 until the samples are known.
};

enum class EtagUse : std::uint8_t {
  kKeep,     ///< A changed object is noticed by its ETag or size.
  kLeaveOut  ///< By size alone: for ETags that mean nothing elsewhere.
};

struct IndexOptions {
  /// Shards scanned in parallel; each takes a thread and about 1 MiB.
  std::size_t threads = 32;
  /// The classes that labels count; empty: the sorted names of the top folders.
  std::vector<std::string> classes;
  EtagUse etags = EtagUse::kKeep;
  /// Reads all data, and keeps a checksum of each sample's bytes.
  bool has_checksums = false;
  /// Selects the objects to include.
  Selection selection;
  /// Returns the objects below the prefix, such as from read_inventory(), with
  /// keys relative to it and in byte order. It is called instead of listing.
  /// May be empty.
  std::function<Result<std::vector<ObjectInfo>>(std::stop_token)> objects;
  /// Identifies their version in one line; empty if unknown.
  std::string objects_version;
  /// Hears of progress now and then, on the calling thread. May be empty.
  std::function<void(const IndexProgress&)> progress;
};

struct BuiltCatalogue {
  Buffer bytes;
  /// A note for the user although nothing failed; empty if there is none.
  std::string note;
};

/// The kind of ETags that this store gives.
EtagKind etag_kind_of(const Store& store);

/// True if the ETags in `catalogue` can be compared with those of `store`;
/// otherwise only sizes can.
bool etags_apply(const Catalogue& catalogue, const Store& store);

/// The objects under `prefix` that `options` select, in byte order, with keys
/// relative to it: from `options.objects`; by Store::stat, if few are named or
/// the store cannot list; otherwise by listing. Updates `now`. Blocks.
///
/// Errors: as list_data() and Store::stat; kInvalidArgument if a listing is
/// needed and the store cannot list
Result<std::vector<ObjectInfo>> find_objects(Store& store,
                                             std::string_view prefix,
                                             const IndexOptions& options,
                                             IndexProgress& now,
                                             const std::stop_token& stop);

/// Lists the objects under `prefix` and makes their catalogue. Blocks.
///
/// If all objects are shards, except for those that companions.h ignores,
/// members are grouped as in WebDataset, and taken from an index beside the
/// shard if one fits. Otherwise each object is a sample with the field `data`,
/// and `label` if there are folders. Hidden objects are ignored, and those that
/// `options.selection` excludes. Samples come in byte order of their objects'
/// keys, and within a shard in the order of its members.
///
/// Errors:
///   kNotFound         nothing is there
///   kInvalidArgument  shards mixed with other objects, objects beside folders,
///                     a store that cannot list
///   kCorrupt          a shard that cannot be read; names it
///   kCancelled        `stop` fired; or any of Store::list and Store::read
Result<BuiltCatalogue> build_catalogue(Store& store, std::string_view prefix,
                                       const IndexOptions& options,
                                       const std::stop_token& stop);

}  // namespace leat
