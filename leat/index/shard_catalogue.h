// Puts one shard after another into a catalogue.
#pragma once
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/index/build.h"
#include "leat/index/companions.h"
#include "leat/index/sample_groups.h"
#include "leat/index/shard_scan.h"
#include "leat/store/store.h"

namespace leat {

/// The shards of `objects`, each with its index where there is one.
std::vector<ShardToScan> shards_to_scan(const SortedObjects& objects);

/// The catalogue of shards, made one shard after another.
///
/// Threads: one at a time.
class ShardCatalogue {
 public:
  /// `fields` are there from the start, in this order: for a part of a dataset,
  /// those of the whole.
  ShardCatalogue(const std::vector<std::string>& classes, EtagKind etags,
                 const std::vector<FieldSpec>& fields = {});
  ShardCatalogue(const ShardCatalogue&) = delete;
  ShardCatalogue& operator=(const ShardCatalogue&) = delete;

  /// Errors: kCorrupt if a sample has the same field twice.
  Result<void> add(const ShardToScan& shard, const ScannedShard& scanned);

  std::uint64_t samples() const { return writer_.samples(); }
  const std::vector<FieldSpec>& fields() const { return writer_.fields(); }

  /// The finished catalogue. Its note tells the user of indexes and lists
  /// beside the shards that do not fit them. Asks `store` for those lists.
  /// Blocks.
  ///
  /// Errors: kNotFound if no shard holds a sample; kCancelled
  Result<BuiltCatalogue> finish(Store& store, std::string_view prefix,
                                const SortedObjects& objects,
                                const std::stop_token& stop) &&;
  /// The catalogue of a part. Errors: kNotFound, as above
  Result<std::shared_ptr<const Catalogue>> open() &&;

 private:
  Result<Buffer> finish() &&;
  std::string note() const;

  CatalogueWriter writer_;
  SampleGroups groups_;
  std::vector<std::uint64_t> samples_;  // The samples of each shard.
  std::uint64_t indexes_ = 0;
  std::uint64_t unfit_ = 0;
  std::string first_note_;
};

}  // namespace leat
