// The shards of a stream whose members are known, and the windows over them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/shard_catalogue.h"
#include "leat/store/layers/read_ahead_store.h"

namespace leat {

/// A run of shards whose members are known.
struct StreamPart {
  std::shared_ptr<const Catalogue> catalogue;
  /// The number of samples that precede the part in the dataset.
  std::uint64_t first_sample = 0;
  std::uint64_t first_block = 0;
  std::uint64_t first_shard = 0;  ///< The number of shards before it.
  /// The end of its samples whose place in the order is known.
  std::uint64_t end = 0;
  /// It reaches the end of the dataset, and of the epoch.
  bool is_last = false;
};

/// The findings about one shard that need no others.
struct ShardFindings {
  ScannedShard scanned;
  std::vector<FieldSpec> fields;
  std::shared_ptr<const Catalogue> catalogue;  ///< Null: it has no samples.
};

/// Errors: kCorrupt, as ShardCatalogue::add()
Result<ShardFindings> find_in(const ShardToScan& shard, ScannedShard scanned,
                              const std::vector<std::string>& classes,
                              EtagKind etags);

/// All that is known of the shards so far: their fields, the first sample of
/// each block, and which windows of blocks are final. A window is final once
/// all its blocks are known, as no block reaches past a shard's end.
///
/// Threads:  one at a time.
/// Lifetime: `shards` and `classes` outlive it.
class KnownShards {
 public:
  KnownShards(const std::vector<ShardToScan>& shards,
              const std::vector<std::string>& classes, EtagKind etags,
              std::uint64_t window_blocks);

  /// Adds the next shard. If `keeps_members` is false, adds it without its
  /// members; no part of it can be made then.
  void add(ShardFindings found, bool keeps_members);

  std::size_t size() const { return known_.size(); }
  std::uint64_t samples() const { return samples_; }
  /// In the order of their first appearance.
  const std::vector<FieldSpec>& fields() const { return fields_; }
  /// The number of these fields that the shards up to this one have.
  std::size_t fields_up_to(std::size_t shard) const;

  /// The first block of the window at a position; the number of blocks in final
  /// windows if that window is not known yet.
  std::uint64_t window_block(std::uint64_t position) const;
  /// The sample up to which a part from `position` on may go: whole windows
  /// that hold a global batch, as few or as many as there are.
  std::optional<std::uint64_t> next_end(std::uint64_t position,
                                        std::uint64_t global_batch,
                                        bool is_smallest) const;
  /// Makes the part from `block` on, up to the sample `end`. Forgets the
  /// members of the shards before it.
  Result<StreamPart> make_part(std::uint64_t block, std::uint64_t end);
  /// The shard of the last sample before `end`.
  std::size_t last_shard(std::uint64_t end) const;

  /// The begin of a block's bytes; if unknown, the end of all that is known.
  AheadPlace place_of(std::uint64_t block) const;
  /// The same for the windows between those of `from_block` and `position`.
  std::vector<AheadPlace> places_of_windows(std::uint64_t from_block,
                                            std::uint64_t position) const;

 private:
  /// A shard whose members are known.
  struct Known {
    std::uint64_t first_sample = 0;
    std::uint64_t first_block = 0;
    std::size_t fields = 0;  ///< Fields of all shards up to it.
    ScannedShard scanned;
  };

  std::uint64_t begin_of_block(std::uint64_t block) const;

  const std::vector<ShardToScan>& shards_;
  const std::vector<std::string>& classes_;
  const EtagKind etags_;
  const std::uint64_t window_blocks_;
  std::vector<Known> known_;
  std::vector<FieldSpec> fields_;
  /// The first sample of each known block, and the place of its bytes.
  std::vector<std::uint64_t> block_samples_;
  std::vector<AheadPlace> block_places_;
  std::uint64_t samples_ = 0;
};

}  // namespace leat
