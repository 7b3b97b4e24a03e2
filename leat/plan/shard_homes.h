// Gives each shard of a stream to one rank.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "leat/base/ids.h"
#include "leat/dataset/catalogue.h"
#include "leat/plan/order.h"

namespace leat {

/// The home rank of a sample: rank r of W has every W-th object from the r-th
/// on. It follows from the listing alone, so a rank that scans a shard knows
/// that most of its samples will be its own, before anybody knows them.
///
/// Threads: any; it never changes.
class ShardHomes {
 public:
  /// For a catalogue whose first object is the `first_object`-th of a dataset,
  /// and its pieces. REQUIRES: world_size > 0; the pieces are the catalogue's.
  ShardHomes(const Catalogue& catalogue, std::shared_ptr<const BlockMap> blocks,
             std::uint64_t first_object, std::uint32_t world_size);

  /// REQUIRES: sample is one of the catalogue's.
  std::uint32_t of(SampleId sample) const {
    return homes_[blocks_->block_of(sample)];
  }

 private:
  const std::shared_ptr<const BlockMap> blocks_;
  std::vector<std::uint32_t> homes_;  ///< By piece, which lies in one object.
};

}  // namespace leat
