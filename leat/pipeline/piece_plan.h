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

/// The part of a block that is read.
enum class PieceExtent : std::uint8_t {
  kWhatIsLeft,  ///< Nothing of samples before the first that is asked for, and
                ///< after the epoch's last step.
  kWholeBlock,  ///< The same bytes in every epoch.
};

/// The piece of the block of `first`, which is the first sample of it that the
/// epoch asks for; `range` is where that one's own bytes lie.
/// REQUIRES: context.pieces.
PiecePlan plan_piece(const RunContext& context, const EpochOrder& order,
                     const Steps& steps, SampleId first, ByteRange range,
                     PieceExtent extent);

}  // namespace leat
