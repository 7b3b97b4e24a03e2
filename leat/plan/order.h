// Decides which sample is at which position of an epoch.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "leat/base/ids.h"
#include "leat/dataset/catalogue.h"
#include "leat/dataset/pieces.h"
#include "leat/plan/run_finder.h"

namespace leat {

enum class Shuffle : std::uint8_t {
  kNone,  ///< Position p holds sample p.
  kFull,  ///< Any sample may be anywhere: for objects.
  /// Pieces of shards are shuffled and dealt to lanes, and the samples of about
  /// `window_blocks` pieces are mixed at a time (lane_order.h). Each piece is
  /// used within one window, so it can be read once and released after it.
  kBlock,
  /// The samples of each window are shuffled, a run of `window_blocks` pieces
  /// as they lie: a sample's place is known once all pieces up to the end of
  /// its window are.
  kStream,
  /// Any sample may be at several positions, or at none, by
  /// `OrderOptions::drawn`: by weight, by a sampler, or in a mix of sources.
  kDrawn,
};

class DrawnOrder;

/// Whether samples are mixed within windows of pieces.
constexpr bool has_windows(Shuffle shuffle) {
  return shuffle == Shuffle::kBlock || shuffle == Shuffle::kStream;
}

/// The pieces that shards are read in: runs of samples whose bytes lie side by
/// side in one object, cut as dataset/pieces.h says.
///
/// Threads: any; it never changes.
class BlockMap {
 public:
  static constexpr std::uint64_t kDefaultPieceBytes = kUsualPieceBytes;

  /// Pieces with these first samples, and the number of all samples.
  /// REQUIRES: it rises from 0; at most 2^32 of them.
  explicit BlockMap(std::vector<std::uint64_t> first_sample)
      : first_sample_(std::move(first_sample)), finder_(first_sample_) {}

  /// The pieces of a catalogue: see pieces_of().
  static BlockMap build(const Catalogue& catalogue,
                        std::uint64_t piece_bytes = kDefaultPieceBytes);

  /// The same for given samples.
  static BlockMap cut(std::span<const SampleSpan> samples,
                      std::uint64_t piece_bytes = kDefaultPieceBytes);

  /// The pieces of a run of samples, as a map of these alone. A piece that
  /// lies across an end of the run is cut there.
  /// REQUIRES: begin <= end <= samples().
  BlockMap part(std::uint64_t begin, std::uint64_t end) const;

  std::uint64_t samples() const { return first_sample_.back(); }
  std::uint64_t blocks() const { return first_sample_.size() - 1; }
  /// The first sample of a block; first_sample(blocks()) is the number of all.
  std::uint64_t first_sample(std::uint64_t block) const {
    return first_sample_[block];
  }
  /// The block of a sample. REQUIRES: sample < samples().
  std::uint64_t block_of(SampleId sample) const;

 private:
  std::vector<std::uint64_t> first_sample_;  // One more than there are blocks.
  RunFinder finder_;
};

/// The options that, with the catalogue, determine the order of every epoch.
struct OrderOptions {
  Shuffle shuffle = Shuffle::kFull;
  std::uint64_t seed = 0;
  /// The number of pieces whose samples are mixed with each other.
  std::uint32_t window_blocks = 16;
  /// The number of the dataset's pieces before the part that is ordered
  /// (kStream alone). The order then has the windows of the whole. In a window
  /// that begins before the part, the order differs from the whole's.
  std::uint64_t first_block = 0;
  /// For kDrawn. Must outlive the owner of these options; an EpochOrder shares
  /// it.
  const DrawnOrder* drawn = nullptr;
};

/// The positions of an epoch from `begin` up to, not including, `end`.
struct PositionRun {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Consecutive ranks: the first and the last of them.
struct HomeRanks {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// The order of one epoch: a bijection of positions and samples, unless kDrawn.
///
/// Depends only on (options, blocks, epoch): never on threads, faults or world
/// size. O(1) memory and time for a look-up; a block shuffle takes O(blocks)
/// memory and O(log blocks) time; a stream O(log blocks) time, and once
/// O(samples of a window) for a window that was not looked at lately.
///
/// Threads: any; its answers never change. Cheap to copy.
class EpochOrder {
 public:
  /// `blocks` may be null unless the shuffle has windows.
  /// REQUIRES: blocks->samples() == samples, options.window_blocks > 0,
  /// options.first_block == 0 unless kStream; for kDrawn, which has its own
  /// size, the epoch is known.
  EpochOrder(std::uint64_t samples, const OrderOptions& options,
             std::shared_ptr<const BlockMap> blocks, std::uint64_t epoch);

  std::uint64_t size() const;
  /// REQUIRES: position < size().
  SampleId at(std::uint64_t position) const;
  /// The first position that at() knows: not 0 if the caller gives the order
  /// and gave the rest of an epoch alone.
  std::uint64_t first() const;
  /// The source of a sample in a mixed stream, counted from 0; otherwise 0.
  std::uint32_t source_of(SampleId sample) const;
  /// REQUIRES: sample < size(), not kDrawn. position_of(at(p)) == p.
  std::uint64_t position_of(SampleId sample) const;

  /// The position of a sample that comes at about the same time as the one at
  /// `position`: in a mixed stream, in the same lap of its source. Nullopt if
  /// it does not come then. REQUIRES: has_lanes(), or not kDrawn.
  std::optional<std::uint64_t> position_near(SampleId sample,
                                             std::uint64_t position) const;

  /// The number of orders that positions_of() looks through together.
  static constexpr std::size_t kTogether = 8;
  /// The same in several epochs of one job, in little more time than one takes
  /// if the shuffle is full. REQUIRES: not kDrawn.
  static std::array<std::uint64_t, kTogether> positions_of(
      std::span<const EpochOrder, kTogether> epochs, SampleId sample);

  /// The positions from the first to the last that hold samples of a block's
  /// window. In a block shuffle those of other lanes' windows lie between them.
  /// REQUIRES: a shuffle with windows, block < blocks->blocks().
  PositionRun window_of(std::uint64_t block) const;

  /// True for a block shuffle with samples, and for a mix of such.
  bool has_lanes() const;
  /// The place of a position's sample along the line of all lanes, in parts of
  /// 2^32 of its length: neighbours lie in one piece. REQUIRES: has_lanes(),
  /// position < size().
  std::uint32_t place_of(std::uint64_t position) const;
  /// The ranks that read a block, if LaneDealing deals: each reads a like part
  /// of the line. Ranks at the ends of a part may read a few samples more.
  /// REQUIRES: has_lanes(), world_size > 0.
  HomeRanks homes_of(std::uint64_t block, std::uint32_t world_size) const;

 private:
  struct Shape;
  std::shared_ptr<const Shape> shape_;
};

}  // namespace leat
