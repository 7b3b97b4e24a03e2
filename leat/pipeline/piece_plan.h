// Decides which bytes of a shard are read as one piece.
#pragma once
#include <cstdint>

#include "leat/pipeline/run_context.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

struct PiecePlan {
  ByteRange range;
  /// Samples of the epoch that will use it, including the first.
  std::uint64_t samples = 0;
};

/// The part of a block that is read.
enum class PieceExtent : std::uint8_t {
  kWhatIsLeft,  ///< Without the samples before the first that is requested, or
                ///< after the epoch's last step.
  kWholeBlock,  ///< The same bytes in every epoch.
};

/// The piece in the block of `first`, the block's first sample that the epoch
/// requests; `range` is the place of that sample's own bytes.
/// REQUIRES: context.pieces.
PiecePlan plan_piece(const RunContext& context, const EpochOrder& order,
                     const Steps& steps, SampleId first, ByteRange range,
                     PieceExtent extent);

}  // namespace leat
