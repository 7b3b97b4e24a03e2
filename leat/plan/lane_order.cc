// Words: a `slot` is a place of a piece in the line; `round` counts the samples
// of a lane in the order of the epoch; `offset` is a sample's place in its
// window as it lies in the line, `turn` its place in the window's own order.

#include "leat/plan/lane_order.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/plan/permutation.h"
#include "leat/plan/scatter.h"

namespace leat {
namespace {

/// Keeps the windows' orders apart from the order of pieces.
constexpr std::uint64_t kLaneSalt = 0x6c616e6573ULL;
/// Strata for each piece of a window: parts of a lane are cut no finer.
constexpr std::uint64_t kStrataOfAPiece = 16;
/// Samples that a stratum has at least, so that it has something to mix.
constexpr std::uint64_t kLeastOfAStratum = 4;
constexpr int kMostStrataBits = 20;
/// Bits of a place: the lane's first, then those of the stratum in it.
constexpr int kPlaceBits = 32;
static_assert(LaneShape::kMostLanes <= std::uint64_t{1}
                                           << (kPlaceBits - kMostStrataBits));

/// The lowest `bits` of x, in the opposite order: 0, 1, 2, … become numbers
/// that are spread evenly, however many are taken (van der Corput).
std::uint64_t reversed(std::uint64_t x, int bits) {
  std::uint64_t y = 0;
  for (int i = 0; i < bits; ++i) y |= ((x >> i) & 1) << (bits - 1 - i);
  return y;
}

}  // namespace

LaneShape LaneShape::of(std::uint64_t pieces, std::uint64_t mixed) {
  LEAT_CHECK(mixed > 0);
  const std::uint64_t most = std::min<std::uint64_t>(
      {std::max<std::uint64_t>(pieces / kLeastPieces, 1), mixed, kMostLanes});
  const std::uint64_t lanes = std::bit_floor(most);
  const std::uint64_t each = std::min<std::uint64_t>(
      mixed / lanes, std::numeric_limits<std::uint32_t>::max());
  return {.lanes = static_cast<std::uint32_t>(lanes),
          .pieces_a_lane = static_cast<std::uint32_t>(each)};
}

/// The samples of some pieces of a lane, which are mixed.
struct LaneOrder::Window {
  std::uint64_t begin = 0;  ///< In the line.
  std::uint64_t size = 0;
  std::uint64_t key = 0;
  int bits = 0;              ///< There are 2^bits strata,
  std::uint64_t whole = 0;   ///< of this many samples each,
  std::uint64_t longer = 0;  ///< and this many of them have one more.

  std::uint64_t strata() const { return std::uint64_t{1} << bits; }
  /// The first of the strata that are taken in a round.
  std::uint64_t shift(std::uint64_t round) const {
    return mix64(key ^ mix64(round));
  }
  Scatter scatter(std::uint64_t stratum) const {
    return Scatter(whole + (stratum < longer ? 1 : 0), mix64(key + stratum));
  }

  struct InStratum {
    std::uint64_t stratum = 0;
    std::uint64_t round = 0;  ///< The number of samples of it that come before.
  };
  InStratum at(std::uint64_t turn) const {
    const std::uint64_t round = turn >> bits;
    const std::uint64_t in_round = turn & (strata() - 1);
    if (round == whole) return {(in_round + shift(round)) % longer, round};
    return {reversed((in_round + shift(round)) & (strata() - 1), bits), round};
  }
  std::uint64_t turn_of(InStratum at) const {
    std::uint64_t in_round;
    if (at.round == whole) {
      in_round = (at.stratum + longer - shift(at.round) % longer) % longer;
    } else {
      in_round =
          (reversed(at.stratum, bits) - shift(at.round)) & (strata() - 1);
    }
    return (at.round << bits) + in_round;
  }

  std::uint64_t offset_at(std::uint64_t turn) const {
    const auto [stratum, round] = at(turn);
    return begin_of(stratum) + scatter(stratum).at(round);
  }
  std::uint64_t turn_at(std::uint64_t offset) const {
    const std::uint64_t stratum = stratum_of(offset);
    return turn_of(
        {.stratum = stratum,
         .round = scatter(stratum).inverse(offset - begin_of(stratum))});
  }

  /// The offset of a stratum's first sample.
  std::uint64_t begin_of(std::uint64_t stratum) const {
    return stratum * whole + std::min(stratum, longer);
  }
  std::uint64_t stratum_of(std::uint64_t offset) const {
    const std::uint64_t in_longer = longer * (whole + 1);
    return offset < in_longer ? offset / (whole + 1)
                              : longer + (offset - in_longer) / whole;
  }
  std::uint64_t place_of(std::uint32_t lane, std::uint32_t lanes,
                         std::uint64_t stratum) const {
    const int in_lane = kPlaceBits - std::countr_zero(lanes);
    return std::uint64_t{lane} << in_lane | stratum << (in_lane - bits);
  }
};

LaneOrder::LaneOrder(std::shared_ptr<const BlockMap> blocks,
                     std::uint64_t mixed_blocks, std::uint64_t seed,
                     std::uint64_t epoch)
    : blocks_(std::move(blocks)),
      shape_(LaneShape::of(blocks_->blocks(), mixed_blocks)),
      pieces_a_lane_(shape_.pieces_a_lane),
      seed_(mix64(mix64(seed ^ kLaneSalt) + mix64(epoch))) {
  LEAT_CHECK(blocks_->blocks() < std::numeric_limits<std::uint32_t>::max());
  lay_out(seed, epoch);
  cut_lanes();
  make_stages();
}

void LaneOrder::lay_out(std::uint64_t seed, std::uint64_t epoch) {
  const std::uint64_t slots = blocks_->blocks();
  const Permutation order(slots, seed, epoch);
  block_at_.resize(slots);
  slot_of_.resize(slots);
  starts_.reserve(slots + 1);
  starts_.push_back(0);
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const std::uint64_t block = order.at(slot);
    block_at_[slot] = static_cast<std::uint32_t>(block);
    slot_of_[block] = static_cast<std::uint32_t>(slot);
    starts_.push_back(starts_.back() + blocks_->first_sample(block + 1) -
                      blocks_->first_sample(block));
  }
  finder_ = RunFinder(starts_);
}

/// At the end of a piece that is nearest to an even cut.
void LaneOrder::cut_lanes() {
  const std::uint64_t samples = starts_.back();
  first_slot_.push_back(0);
  for (std::uint32_t lane = 1; lane < shape_.lanes; ++lane) {
    const std::uint64_t even = samples / shape_.lanes * lane +
                               samples % shape_.lanes * lane / shape_.lanes;
    auto nearest = std::ranges::lower_bound(starts_, even);
    if (nearest != starts_.begin() && even - *(nearest - 1) < *nearest - even) {
      --nearest;
    }
    const auto slot = static_cast<std::uint64_t>(nearest - starts_.begin());
    first_slot_.push_back(std::max(slot, first_slot_.back()));
  }
  first_slot_.push_back(starts_.size() - 1);
}

void LaneOrder::make_stages() {
  const std::uint32_t lanes = shape_.lanes;
  std::vector<std::uint64_t> lengths(lanes);
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    lengths[lane] = starts_[first_slot_[lane + 1]] - starts_[first_slot_[lane]];
  }
  std::vector<std::uint64_t> ends = lengths;
  std::ranges::sort(ends);
  const int bits = std::countr_zero(lanes);
  std::uint64_t round = 0;
  std::uint64_t position = 0;
  for (const std::uint64_t end : ends) {
    if (end == round) continue;
    Stage stage{.first_round = round, .first_position = position};
    stage.place.resize(lanes);
    for (std::uint32_t i = 0; i < lanes; ++i) {
      const std::uint64_t lane = reversed(i, bits);
      if (lengths[lane] <= round) continue;
      stage.place[lane] = static_cast<std::uint8_t>(stage.lane.size());
      stage.lane.push_back(static_cast<std::uint8_t>(lane));
    }
    stage.lanes = Divisor(stage.lane.size());
    position += (end - round) * stage.lane.size();
    round = end;
    stages_.push_back(std::move(stage));
  }
}

LaneOrder::InLane LaneOrder::in_lane(std::uint64_t position) const {
  auto stage = stages_.begin();
  if (stages_.size() > 1 && position >= stages_[1].first_position) {
    stage = std::ranges::upper_bound(stages_, position, {},
                                     &Stage::first_position) -
            1;
  }
  const Divisor::Parts parts =
      stage->lanes.divide(position - stage->first_position);
  return {.lane = stage->lane[parts.remainder],
          .round = stage->first_round + parts.quotient};
}

std::uint64_t LaneOrder::position_at(InLane at) const {
  auto stage = stages_.begin();
  if (stages_.size() > 1 && at.round >= stages_[1].first_round) {
    stage =
        std::ranges::upper_bound(stages_, at.round, {}, &Stage::first_round) -
        1;
  }
  return stage->first_position +
         (at.round - stage->first_round) * stage->lanes.value() +
         stage->place[at.lane];
}

LaneOrder::Window LaneOrder::window_at(std::uint32_t lane,
                                       std::uint64_t slot) const {
  const std::uint64_t first =
      slot - pieces_a_lane_.divide(slot - first_slot_[lane]).remainder;
  const std::uint64_t end =
      std::min(first + shape_.pieces_a_lane, first_slot_[lane + 1]);
  Window window{.begin = starts_[first],
                .size = starts_[end] - starts_[first],
                .key = mix64(seed_ + first)};
  const std::uint64_t strata =
      std::clamp<std::uint64_t>(window.size / kLeastOfAStratum, 1,
                                kStrataOfAPiece * shape_.pieces_a_lane);
  window.bits =
      std::min(static_cast<int>(std::bit_width(strata)) - 1, kMostStrataBits);
  window.whole = window.size >> window.bits;
  window.longer = window.size & (window.strata() - 1);
  return window;
}

std::uint32_t LaneOrder::lane_of_slot(std::uint64_t slot) const {
  // The last one that begins there: those before it have no pieces.
  const auto after = std::ranges::upper_bound(first_slot_, slot);
  return static_cast<std::uint32_t>(after - first_slot_.begin()) - 1;
}

std::uint64_t LaneOrder::at(std::uint64_t position) const {
  const auto [lane, round] = in_lane(position);
  const std::uint64_t begin = starts_[first_slot_[lane]] + round;
  const std::uint64_t slot = slot_of(begin);
  const Window window = window_at(lane, slot);
  const std::uint64_t in_line =
      window.begin + window.offset_at(begin - window.begin);
  const bool is_one_piece = shape_.pieces_a_lane == 1;
  const std::uint64_t its = is_one_piece ? slot : slot_of(in_line);
  return blocks_->first_sample(block_at_[its]) + (in_line - starts_[its]);
}

std::uint64_t LaneOrder::position_of(std::uint64_t sample) const {
  const std::uint64_t block = blocks_->block_of(SampleId{sample});
  const std::uint64_t slot = slot_of_[block];
  const std::uint32_t lane = lane_of_slot(slot);
  const Window window = window_at(lane, slot);
  const std::uint64_t in_line =
      starts_[slot] + (sample - blocks_->first_sample(block));
  const std::uint64_t turn = window.turn_at(in_line - window.begin);
  return position_at(
      {.lane = lane,
       .round = window.begin + turn - starts_[first_slot_[lane]]});
}

PositionRun LaneOrder::window_of(std::uint64_t block) const {
  const std::uint64_t slot = slot_of_[block];
  const std::uint32_t lane = lane_of_slot(slot);
  const Window window = window_at(lane, slot);
  const std::uint64_t round = window.begin - starts_[first_slot_[lane]];
  return {
      .begin = position_at({.lane = lane, .round = round}),
      .end = position_at({.lane = lane, .round = round + window.size - 1}) + 1};
}

HomeRanks LaneOrder::homes_of(std::uint64_t block,
                              std::uint32_t world_size) const {
  const std::uint64_t slot = slot_of_[block];
  const std::uint32_t lane = lane_of_slot(slot);
  const Window window = window_at(lane, slot);
  const auto rank_at = [&](std::uint64_t in_line) {
    const std::uint64_t stratum = window.stratum_of(in_line - window.begin);
    const std::uint64_t place = window.place_of(lane, shape_.lanes, stratum);
    return static_cast<std::uint32_t>(place * world_size >> kPlaceBits);
  };
  return {.first = rank_at(starts_[slot]),
          .last = rank_at(starts_[slot + 1] - 1)};
}

std::uint32_t LaneOrder::place_of(std::uint64_t position) const {
  const auto [lane, round] = in_lane(position);
  const std::uint64_t begin = starts_[first_slot_[lane]] + round;
  const Window window = window_at(lane, slot_of(begin));
  return static_cast<std::uint32_t>(window.place_of(
      lane, shape_.lanes, window.at(begin - window.begin).stratum));
}

}  // namespace leat
