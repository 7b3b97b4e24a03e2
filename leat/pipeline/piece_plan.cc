#include "leat/pipeline/piece_plan.h"

#include <algorithm>
#include <optional>

namespace leat {
namespace {

/// Bytes of others that are read rather than skipped. Lanes leave few between a
/// rank's own; where each rank takes a run of every step, all others' are.
constexpr std::uint64_t kGapInLanes = 1 << 20;
constexpr std::uint64_t kGapInRuns = 64 << 10;

/// The place of a sample's delivered bytes in an object: from begin to end,
/// none if these are equal.
struct Hull {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool is_empty() const { return begin == end; }
  void add(const Hull& other) {
    if (other.is_empty()) return;
    begin = is_empty() ? other.begin : std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

Hull hull_of(const RunContext& context, SampleId sample, ObjectIndex object) {
  Hull hull;
  for (const DeliveredField& field : context.fields) {
    if (!field.is_fetched()) continue;
    const ByteRange range = context.catalogue.range(field.column, sample);
    if (range.is_missing() || range.object != object) continue;
    hull.add({range.offset, range.offset + range.length_bytes});
  }
  return hull;
}

/// Whether a run of one rank goes on with a sample.
bool is_near(const Hull& run, const Hull& sample, std::uint64_t gap) {
  return run.is_empty() || sample.is_empty() ||
         (sample.begin < run.end + gap && run.begin < sample.end + gap);
}

}  // namespace

std::vector<PiecePlan> plan_pieces(const RunContext& context, EpochPlan& plan,
                                   SampleId first, std::uint64_t position,
                                   ByteRange range, PieceExtent extent) {
  const BlockMap& blocks = *context.pieces;
  const EpochOrder& order = plan.order();
  const Steps& steps = plan.steps();
  const std::uint64_t block = blocks.block_of(first);
  const std::uint64_t last_position = steps.position_after(steps.count() - 1);
  const bool is_whole = extent == PieceExtent::kWholeBlock;
  // One rank reads whatever is left of a piece at once, also after a resume.
  const bool is_alone = is_whole || steps.rank().world_size == 1;
  const std::uint64_t gap = plan.shares_lanes() ? kGapInLanes : kGapInRuns;
  std::vector<PiecePlan> pieces;
  Hull hull;
  const auto end_piece = [&] {
    if (pieces.empty()) return;
    pieces.back().range = {.object = range.object,
                           .offset = hull.begin,
                           .length_bytes = hull.end - hull.begin};
  };
  for (std::uint64_t id = blocks.first_sample(block);
       id < blocks.first_sample(block + 1); ++id) {
    const std::optional<std::uint64_t> at =
        order.position_near(SampleId{id}, position);
    // Samples before the first one had no bytes, and did without the piece.
    const bool is_left =
        at && *at >= position && *at < last_position && plan.is_mine(*at);
    if (!is_left && !is_whole) continue;
    const Hull its = hull_of(context, SampleId{id}, range.object);
    if (pieces.empty() || !(is_alone || is_near(hull, its, gap))) {
      end_piece();
      pieces.push_back({.range = {}, .first = SampleId{id}, .last = {}});
      hull = {};
    }
    hull.add(its);
    pieces.back().last = SampleId{id};
    if (is_left) ++pieces.back().samples;
  }
  end_piece();
  return pieces;
}

}  // namespace leat
