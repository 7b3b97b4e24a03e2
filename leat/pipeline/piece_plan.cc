#include "leat/pipeline/piece_plan.h"

#include <algorithm>

namespace leat {

PiecePlan plan_piece(const RunContext& context, const EpochOrder& order,
                     const Steps& steps, SampleId first, ByteRange range,
                     PieceExtent extent) {
  const BlockMap& blocks = *context.pieces;
  const std::uint64_t block = blocks.block_of(first);
  std::uint64_t begin = range.offset;
  std::uint64_t end = range.offset + range.length_bytes;
  PiecePlan plan;
  // Samples before this one had no bytes, and did without the piece.
  const std::uint64_t first_position = order.position_of(first);
  const std::uint64_t last_position = steps.position_after(steps.count() - 1);
  for (std::uint64_t id = blocks.first_sample(block);
       id < blocks.first_sample(block + 1); ++id) {
    const std::uint64_t position = order.position_of(SampleId{id});
    const bool is_left = position >= first_position && position < last_position;
    if (is_left) ++plan.samples;
    if (!is_left && extent == PieceExtent::kWhatIsLeft) continue;
    for (const DeliveredField& field : context.fields) {
      if (!field.is_fetched()) continue;
      const ByteRange other =
          context.catalogue.range(field.column, SampleId{id});
      if (other.is_missing() || other.object != range.object) continue;
      begin = std::min(begin, other.offset);
      end = std::max(end, other.offset + other.length_bytes);
    }
  }
  plan.range = {
      .object = range.object, .offset = begin, .length_bytes = end - begin};
  return plan;
}

}  // namespace leat
