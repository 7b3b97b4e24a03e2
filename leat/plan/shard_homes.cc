#include "leat/plan/shard_homes.h"

#include <utility>

namespace leat {
namespace {

/// The object of the first of these samples that has bytes; 0 if none has.
std::uint64_t object_of_samples(const Catalogue& catalogue, std::uint64_t begin,
                                std::uint64_t end) {
  for (std::uint64_t sample = begin; sample < end; ++sample) {
    for (std::size_t f = 0; f < catalogue.fields().size(); ++f) {
      if (catalogue.fields()[f].kind != FieldKind::kBytes) continue;
      const ByteRange range = catalogue.range(f, SampleId{sample});
      if (!range.is_missing()) return range.object.value;
    }
  }
  return 0;
}

}  // namespace

ShardHomes::ShardHomes(const Catalogue& catalogue,
                       std::shared_ptr<const BlockMap> blocks,
                       std::uint64_t first_object, std::uint32_t world_size)
    : blocks_(std::move(blocks)) {
  homes_.reserve(blocks_->blocks());
  for (std::uint64_t block = 0; block < blocks_->blocks(); ++block) {
    const std::uint64_t object =
        first_object + object_of_samples(catalogue,
                                         blocks_->first_sample(block),
                                         blocks_->first_sample(block + 1));
    homes_.push_back(static_cast<std::uint32_t>(object % world_size));
  }
}

}  // namespace leat
