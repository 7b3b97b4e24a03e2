// The order of a block shuffle: pieces in lanes, which ranks can divide.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "leat/base/ids.h"
#include "leat/plan/divisor.h"
#include "leat/plan/order.h"
#include "leat/plan/run_finder.h"

namespace leat {

/// How many lanes a block shuffle has, and how many pieces each mixes at a
/// time.
struct LaneShape {
  std::uint32_t lanes = 1;          ///< C, a power of two.
  std::uint32_t pieces_a_lane = 1;  ///< L.

  /// The most lanes. With this many, hardly any two ranks share a piece.
  static constexpr std::uint32_t kMostLanes = 256;
  /// The fewest pieces of a lane, unless it is the only one.
  static constexpr std::uint64_t kLeastPieces = 2;

  /// The shape for a dataset of `pieces` of which `mixed` are mixed at a time:
  /// as many lanes as both allow, C * L <= mixed. REQUIRES: mixed > 0.
  static LaneShape of(std::uint64_t pieces, std::uint64_t mixed);
};

/// The order of one epoch of a block shuffle.
///
/// The pieces are permuted by (seed, epoch) and laid in a line. The line is cut
/// at ends of pieces into C lanes of like length. Within a lane, each L pieces
/// make a window. Round j of the epoch takes the j-th sample of every lane that
/// has one, so a batch has samples of all lanes, and a piece belongs to one
/// lane alone. A window is divided into strata: runs of like length. It gives a
/// sample of each stratum in turn, at random from within it, so that a part of
/// a lane is read as evenly as a whole one.
///
/// Nothing here knows of ranks: LaneDealing cuts each step by place_of().
///
/// Threads: any; it never changes. Takes O(blocks) memory; a look-up takes the
/// same time whatever the size, unless pieces are of very unequal length.
class LaneOrder {
 public:
  /// REQUIRES: mixed_blocks > 0, and there is a block for each sample.
  LaneOrder(std::shared_ptr<const BlockMap> blocks, std::uint64_t mixed_blocks,
            std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t at(std::uint64_t position) const;
  std::uint64_t position_of(std::uint64_t sample) const;
  /// From the first position that holds a sample of the block's window to the
  /// last one. Those between them are of all lanes.
  PositionRun window_of(std::uint64_t block) const;
  /// The place of a position's stratum along the line, of 2^32.
  std::uint32_t place_of(std::uint64_t position) const;
  /// The ranks whose parts of the line a block lies in, if all parts are alike.
  /// REQUIRES: world_size > 0.
  HomeRanks homes_of(std::uint64_t block, std::uint32_t world_size) const;

 private:
  /// Rounds in which the same lanes have a sample.
  struct Stage {
    std::uint64_t first_round = 0;
    std::uint64_t first_position = 0;
    Divisor lanes{1};                      ///< How many.
    std::vector<std::uint8_t> lane = {};   ///< By place in the round.
    std::vector<std::uint8_t> place = {};  ///< By lane.
  };
  /// A number of a lane's sample: the first is 0.
  struct InLane {
    std::uint32_t lane = 0;
    std::uint64_t round = 0;
  };
  struct Window;

  void lay_out(std::uint64_t seed, std::uint64_t epoch);
  void cut_lanes();
  void make_stages();
  InLane in_lane(std::uint64_t position) const;
  std::uint64_t position_at(InLane at) const;
  /// The slot that a place in the line is in.
  std::uint64_t slot_of(std::uint64_t in_line) const {
    return finder_.find(in_line, starts_);
  }
  Window window_at(std::uint32_t lane, std::uint64_t slot) const;
  std::uint32_t lane_of_slot(std::uint64_t slot) const;

  std::shared_ptr<const BlockMap> blocks_;
  LaneShape shape_;
  Divisor pieces_a_lane_;
  std::uint64_t seed_;                   ///< Mixes the windows.
  std::vector<std::uint32_t> block_at_;  ///< By slot: a place in the line.
  std::vector<std::uint32_t> slot_of_;   ///< By block.
  /// By slot, and one more: the place in the line of its first sample.
  std::vector<std::uint64_t> starts_;
  RunFinder finder_;                       ///< Finds a slot by `starts_`.
  std::vector<std::uint64_t> first_slot_;  ///< By lane, and one more.
  std::vector<Stage> stages_;
};

}  // namespace leat
