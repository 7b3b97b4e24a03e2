#include "leat/engine/known_shards.h"

#include <algorithm>
#include <utility>

#include "leat/plan/order.h"

namespace leat {
namespace {

/// The offset at which the bytes of a sample begin.
std::uint64_t begin_of(const Catalogue& catalogue, SampleId sample) {
  std::uint64_t begin = ~std::uint64_t{0};
  for (std::size_t f = 0; f < catalogue.fields().size(); ++f) {
    const ByteRange range = catalogue.range(f, sample);
    if (!range.is_missing()) begin = std::min(begin, range.offset);
  }
  return begin;
}

}  // namespace

Result<ShardFindings> find_in(const ShardToScan& shard, ScannedShard scanned,
                              const std::vector<std::string>& classes,
                              EtagKind etags) {
  ShardCatalogue alone(classes, etags);
  LEAT_TRY_VOID(alone.add(shard, scanned));
  ShardFindings found{.scanned = std::move(scanned), .fields = alone.fields()};
  if (alone.samples() != 0) {
    LEAT_TRY(found.catalogue, std::move(alone).open());
  }
  return found;
}

KnownShards::KnownShards(const std::vector<ShardToScan>& shards,
                         const std::vector<std::string>& classes,
                         EtagKind etags, std::uint64_t window_blocks)
    : shards_(shards),
      classes_(classes),
      etags_(etags),
      window_blocks_(window_blocks) {}

void KnownShards::add(ShardFindings found, bool keeps_members) {
  for (const FieldSpec& field : found.fields) {
    if (std::ranges::find(fields_, field.name, &FieldSpec::name) ==
        fields_.end()) {
      fields_.push_back(field);
    }
  }
  const std::size_t shard = known_.size();
  known_.push_back({.first_sample = samples_,
                    .first_block = block_samples_.size(),
                    .fields = fields_.size()});
  if (keeps_members) known_.back().scanned = std::move(found.scanned);
  if (found.catalogue == nullptr) return;
  const BlockMap blocks = BlockMap::build(*found.catalogue);
  for (std::uint64_t b = 0; b < blocks.blocks(); ++b) {
    const SampleId first{blocks.first_sample(b)};
    block_samples_.push_back(samples_ + first.value);
    block_places_.push_back({shard, begin_of(*found.catalogue, first)});
  }
  samples_ += found.catalogue->samples();
}

std::size_t KnownShards::fields_up_to(std::size_t shard) const {
  return known_[shard].fields;
}

std::uint64_t KnownShards::begin_of_block(std::uint64_t block) const {
  return block < block_samples_.size() ? block_samples_[block] : samples_;
}

std::uint64_t KnownShards::window_block(std::uint64_t position) const {
  std::uint64_t block = block_samples_.size();
  if (position < samples_) {
    const auto after = std::ranges::upper_bound(block_samples_, position);
    block = static_cast<std::uint64_t>(after - block_samples_.begin()) - 1;
  }
  return block / window_blocks_ * window_blocks_;
}

std::optional<std::uint64_t> KnownShards::next_end(std::uint64_t position,
                                                   std::uint64_t global_batch,
                                                   bool is_smallest) const {
  const std::uint64_t end = begin_of_block(window_block(samples_));
  if (end < position || end - position < global_batch) return std::nullopt;
  if (!is_smallest) return end;
  std::uint64_t least = window_blocks_;
  while (begin_of_block(least) - position < global_batch) {
    least += window_blocks_;
  }
  return begin_of_block(least);
}

std::size_t KnownShards::last_shard(std::uint64_t end) const {
  const auto after = std::ranges::lower_bound(block_samples_, end);
  const auto block = static_cast<std::size_t>(after - block_samples_.begin());
  return block_places_[block - 1].object;
}

Result<StreamPart> KnownShards::make_part(std::uint64_t block,
                                          std::uint64_t end) {
  const std::size_t first = block_places_[block].object;
  const std::size_t last = last_shard(end);
  for (std::size_t i = 0; i < first; ++i) known_[i].scanned = {};
  const auto fields = static_cast<std::ptrdiff_t>(known_[last].fields);
  ShardCatalogue part(classes_, etags_,
                      {fields_.begin(), fields_.begin() + fields});
  for (std::size_t i = first; i <= last; ++i) {
    LEAT_TRY_VOID(part.add(shards_[i], known_[i].scanned));
  }
  StreamPart made{.first_sample = known_[first].first_sample,
                  .first_block = known_[first].first_block,
                  .first_shard = first,
                  .end = end - known_[first].first_sample};
  LEAT_TRY(made.catalogue, std::move(part).open());
  return made;
}

AheadPlace KnownShards::place_of(std::uint64_t block) const {
  return block < block_places_.size() ? block_places_[block]
                                      : AheadPlace{known_.size(), 0};
}

std::vector<AheadPlace> KnownShards::places_of_windows(
    std::uint64_t from_block, std::uint64_t position) const {
  std::vector<AheadPlace> places;
  const std::uint64_t last = window_block(position);
  for (std::uint64_t block = from_block;
       block <= last && block < block_places_.size(); block += window_blocks_) {
    places.push_back(block_places_[block]);
  }
  return places;
}

}  // namespace leat
