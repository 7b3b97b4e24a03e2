// The block shuffle: the blocks' order is a Permutation of (seed, epoch); every
// `window_blocks` blocks of it, one after another, make a window; the samples
// of a window are ordered by a Permutation of (seed, epoch, window). A stream
// is the same without the first of these permutations.
//
// Words: `slot` is a place in the blocks' order, `rank in window` the number of
// a sample among those of its window before they are permuted. starts_[slot] is
// the position at which the slot's samples would begin if windows were not
// permuted; a window begins at starts_ of its first slot either way.

#include "leat/plan/order.h"

#include <algorithm>
#include <array>
#include <optional>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/permutation.h"

namespace leat {
namespace {

/// Keeps the orders of windows apart from the order of blocks.
constexpr std::uint64_t kWindowSalt = 0x77696e646f7773ULL;

class BlockShuffle {
 public:
  BlockShuffle(const OrderOptions& options,
               std::shared_ptr<const BlockMap> blocks, std::uint64_t epoch)
      : blocks_(std::move(blocks)),
        window_blocks_(options.window_blocks),
        first_block_(options.first_block),
        window_seed_(mix64(mix64(options.seed ^ kWindowSalt) + mix64(epoch))) {
    if (options.shuffle == Shuffle::kBlock) {
      block_order_.emplace(blocks_->blocks(), options.seed, epoch);
    }
    starts_.reserve(blocks_->blocks() + 1);
    std::uint64_t position = 0;
    for (std::uint64_t slot = 0; slot < blocks_->blocks(); ++slot) {
      starts_.push_back(position);
      const std::uint64_t block = block_at(slot);
      position +=
          blocks_->first_sample(block + 1) - blocks_->first_sample(block);
    }
    starts_.push_back(position);
  }

  std::uint64_t at(std::uint64_t position) const {
    const std::uint64_t window = window_at(slot_of(position));
    const std::uint64_t begin = window_begin(window);
    const std::uint64_t unpermuted =
        begin + window_order(window).at(position - begin);
    const std::uint64_t slot = slot_of(unpermuted);
    return blocks_->first_sample(block_at(slot)) + (unpermuted - starts_[slot]);
  }

  std::uint64_t position_of(std::uint64_t sample) const {
    const std::uint64_t block = blocks_->block_of(SampleId{sample});
    const std::uint64_t slot = slot_of_block(block);
    const std::uint64_t unpermuted =
        starts_[slot] + (sample - blocks_->first_sample(block));
    const std::uint64_t window = window_at(slot);
    const std::uint64_t begin = window_begin(window);
    return begin + window_order(window).position_of(unpermuted - begin);
  }

  PositionRun window_of(std::uint64_t block) const {
    const std::uint64_t window = window_at(slot_of_block(block));
    return {window_begin(window), window_begin(window + 1)};
  }

 private:
  /// The orders that look-ups touched lately: a table of a few thousand entries
  /// is not to be made again for each. A window has one place in it.
  static constexpr std::uint64_t kCached = 8;
  struct CachedOrder {
    std::uint64_t window = 0;
    std::optional<Permutation> order;
  };

  /// The slot whose samples `position` would be among. Blocks are never empty,
  /// so it is the only one.
  std::uint64_t slot_of(std::uint64_t position) const {
    const auto after =
        std::upper_bound(starts_.begin(), starts_.end(), position);
    return static_cast<std::uint64_t>(after - starts_.begin()) - 1;
  }

  std::uint64_t block_at(std::uint64_t slot) const {
    return block_order_ ? block_order_->at(slot) : slot;
  }
  std::uint64_t slot_of_block(std::uint64_t block) const {
    return block_order_ ? block_order_->position_of(block) : block;
  }

  /// Windows are numbered through the whole dataset.
  std::uint64_t window_at(std::uint64_t slot) const {
    return (first_block_ + slot) / window_blocks_;
  }
  std::uint64_t window_begin(std::uint64_t window) const {
    const std::uint64_t first = std::max(window * window_blocks_, first_block_);
    return starts_[std::min(first - first_block_, blocks_->blocks())];
  }

  Permutation window_order(std::uint64_t window) const {
    const MutexLock lock(mutex_);
    CachedOrder& place = cache_[window % kCached];
    if (!place.order.has_value() || place.window != window) {
      const std::uint64_t size =
          window_begin(window + 1) - window_begin(window);
      place.order.emplace(size, window_seed_, window);
      place.window = window;
    }
    return *place.order;
  }

  // Constant after construction.
  std::shared_ptr<const BlockMap> blocks_;
  std::uint64_t window_blocks_;
  std::uint64_t first_block_;
  std::uint64_t window_seed_;
  std::optional<Permutation> block_order_;  // Unset: as they lie.
  std::vector<std::uint64_t> starts_;

  mutable Mutex mutex_;
  mutable std::array<CachedOrder, kCached> cache_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace

struct EpochOrder::Shape {
  std::uint64_t samples = 0;
  std::optional<Permutation> full;
  std::optional<BlockShuffle> block;
  std::shared_ptr<const DrawnEpoch> drawn;
};

EpochOrder::EpochOrder(std::uint64_t samples, const OrderOptions& options,
                       std::shared_ptr<const BlockMap> blocks,
                       std::uint64_t epoch) {
  auto shape = std::make_shared<Shape>();
  shape->samples = samples;
  if (options.shuffle == Shuffle::kFull) {
    shape->full.emplace(samples, options.seed, epoch);
  } else if (has_windows(options.shuffle)) {
    LEAT_CHECK(options.first_block == 0 || options.shuffle == Shuffle::kStream);
    LEAT_CHECK(blocks != nullptr && blocks->samples() == samples);
    LEAT_CHECK(options.window_blocks > 0);
    shape->block.emplace(options, std::move(blocks), epoch);
  } else if (options.shuffle == Shuffle::kDrawn) {
    LEAT_CHECK(options.drawn != nullptr);
    shape->drawn = options.drawn->epoch(epoch);
    LEAT_CHECK(shape->drawn != nullptr);
    shape->samples = shape->drawn->size();
  }
  shape_ = std::move(shape);
}

std::uint64_t EpochOrder::size() const { return shape_->samples; }

SampleId EpochOrder::at(std::uint64_t position) const {
  if (shape_->full.has_value()) return SampleId{shape_->full->at(position)};
  if (shape_->block.has_value()) return SampleId{shape_->block->at(position)};
  if (shape_->drawn != nullptr) return shape_->drawn->at(position);
  return SampleId{position};
}

std::uint64_t EpochOrder::position_of(SampleId sample) const {
  if (shape_->full.has_value()) return shape_->full->position_of(sample.value);
  if (shape_->block.has_value()) {
    return shape_->block->position_of(sample.value);
  }
  LEAT_CHECK(shape_->drawn == nullptr);  // Several, or none.
  return sample.value;
}

std::array<std::uint64_t, EpochOrder::kTogether> EpochOrder::positions_of(
    std::span<const EpochOrder, kTogether> epochs, SampleId sample) {
  static_assert(kTogether == Permutation::kTogether);
  if (epochs[0].shape_->full.has_value()) {
    std::array<const Permutation*, kTogether> orders;
    for (std::size_t i = 0; i < kTogether; ++i) {
      orders[i] = &*epochs[i].shape_->full;
    }
    return Permutation::positions_of(orders, sample.value);
  }
  std::array<std::uint64_t, kTogether> found;
  for (std::size_t i = 0; i < kTogether; ++i) {
    found[i] = epochs[i].position_of(sample);
  }
  return found;
}

PositionRun EpochOrder::window_of(std::uint64_t block) const {
  LEAT_CHECK(shape_->block.has_value());
  return shape_->block->window_of(block);
}

}  // namespace leat
