// A stream: every `window_blocks` blocks, one after another, make a window; the
// samples of a window are ordered by a Permutation of (seed, epoch, window).
// The block shuffle is lane_order.h's.

#include "leat/plan/order.h"

#include <algorithm>
#include <array>
#include <optional>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/lane_order.h"
#include "leat/plan/permutation.h"

namespace leat {
namespace {

/// Keeps the orders of windows apart from other orders of a seed.
constexpr std::uint64_t kWindowSalt = 0x77696e646f7773ULL;

class StreamShuffle {
 public:
  StreamShuffle(const OrderOptions& options,
                std::shared_ptr<const BlockMap> blocks, std::uint64_t epoch)
      : blocks_(std::move(blocks)),
        window_blocks_(options.window_blocks),
        first_block_(options.first_block),
        window_seed_(mix64(mix64(options.seed ^ kWindowSalt) + mix64(epoch))) {}

  std::uint64_t at(std::uint64_t position) const {
    const std::uint64_t window =
        window_at(blocks_->block_of(SampleId{position}));
    const std::uint64_t begin = window_begin(window);
    return begin + window_order(window).at(position - begin);
  }

  std::uint64_t position_of(std::uint64_t sample) const {
    const std::uint64_t window = window_at(blocks_->block_of(SampleId{sample}));
    const std::uint64_t begin = window_begin(window);
    return begin + window_order(window).position_of(sample - begin);
  }

  PositionRun window_of(std::uint64_t block) const {
    const std::uint64_t window = window_at(block);
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

  /// Windows are numbered through the whole dataset.
  std::uint64_t window_at(std::uint64_t block) const {
    return (first_block_ + block) / window_blocks_;
  }
  std::uint64_t window_begin(std::uint64_t window) const {
    const std::uint64_t first = std::max(window * window_blocks_, first_block_);
    return blocks_->first_sample(
        std::min(first - first_block_, blocks_->blocks()));
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

  mutable Mutex mutex_;
  mutable std::array<CachedOrder, kCached> cache_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace

struct EpochOrder::Shape {
  std::uint64_t samples = 0;
  std::optional<Permutation> full;
  std::optional<LaneOrder> lanes;
  std::optional<StreamShuffle> stream;
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
    if (options.shuffle == Shuffle::kBlock) {
      if (samples > 0) {
        shape->lanes.emplace(std::move(blocks), options.window_blocks,
                             options.seed, epoch);
      }
    } else {
      shape->stream.emplace(options, std::move(blocks), epoch);
    }
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
  if (shape_->lanes.has_value()) return SampleId{shape_->lanes->at(position)};
  if (shape_->stream.has_value()) return SampleId{shape_->stream->at(position)};
  if (shape_->drawn != nullptr) return shape_->drawn->at(position);
  return SampleId{position};
}

std::uint64_t EpochOrder::first() const {
  return shape_->drawn != nullptr ? shape_->drawn->first() : 0;
}

std::uint32_t EpochOrder::source_of(SampleId sample) const {
  return shape_->drawn != nullptr ? shape_->drawn->source_of(sample) : 0;
}

std::uint64_t EpochOrder::position_of(SampleId sample) const {
  if (shape_->full.has_value()) return shape_->full->position_of(sample.value);
  if (shape_->lanes.has_value()) {
    return shape_->lanes->position_of(sample.value);
  }
  if (shape_->stream.has_value()) {
    return shape_->stream->position_of(sample.value);
  }
  LEAT_CHECK(shape_->drawn == nullptr);  // Several, or none.
  return sample.value;
}

std::optional<std::uint64_t> EpochOrder::position_near(
    SampleId sample, std::uint64_t position) const {
  if (shape_->drawn != nullptr) {
    return shape_->drawn->position_near(sample, position);
  }
  return position_of(sample);
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
  if (shape_->lanes.has_value()) return shape_->lanes->window_of(block);
  LEAT_CHECK(shape_->stream.has_value());
  return shape_->stream->window_of(block);
}

bool EpochOrder::has_lanes() const {
  return shape_->lanes.has_value() ||
         (shape_->drawn != nullptr && shape_->drawn->has_lanes());
}

HomeRanks EpochOrder::homes_of(std::uint64_t block,
                               std::uint32_t world_size) const {
  LEAT_CHECK(shape_->lanes.has_value());
  return shape_->lanes->homes_of(block, world_size);
}

std::uint32_t EpochOrder::place_of(std::uint64_t position) const {
  if (shape_->drawn != nullptr) return shape_->drawn->place_of(position);
  LEAT_CHECK(shape_->lanes.has_value());
  return shape_->lanes->place_of(position);
}

}  // namespace leat
