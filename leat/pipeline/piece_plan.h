// Which bytes of a shard are read as one piece.
#pragma once
#include <cstdint>

#include "leat/pipeline/run_context.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

struct PiecePlan {
  ByteRange range;
  /// Samples of the epoch that will use it, the first one included.
  std::uint64_t samples = 0;
};

/// The piece of the block of `first`, which is the first sample of it that the
/// epoch asks for; `range` is where that one's own bytes lie. Of samples before
/// it and after the epoch's last step nothing is read.
/// REQUIRES: context.pieces.
PiecePlan plan_piece(const RunContext& context, const EpochOrder& order,
                     const Steps& steps, SampleId first, ByteRange range);

}  // namespace leat
