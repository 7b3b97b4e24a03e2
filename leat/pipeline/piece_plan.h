// Decides which bytes of a shard are read as one piece.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/pipeline/epoch_plan.h"
#include "leat/pipeline/run_context.h"

namespace leat {

/// A run of a block's samples that are read together.
struct PiecePlan {
  ByteRange range;
  /// The first and the last sample that will use it.
  SampleId first;
  SampleId last;
  /// The number of samples that will.
  std::uint64_t samples = 0;
};

/// The part of a block that is read.
enum class PieceExtent : std::uint8_t {
  kWhatIsLeft,  ///< Without the samples that this rank does not read from here
                ///< on, where they take more than little at a stretch.
  kWholeBlock,  ///< The same bytes in every epoch.
};

/// The pieces in the block of `first`, the block's first sample that this run
/// requests, at `position`; `range` is the place of that sample's own bytes.
/// They rise by sample, and one of them has `first`. A whole block is one
/// piece; else what lies between two samples of this rank is read too if it is
/// short, since a request costs as much as some bytes. REQUIRES:
/// context.pieces.
std::vector<PiecePlan> plan_pieces(const RunContext& context, EpochPlan& plan,
                                   SampleId first, std::uint64_t position,
                                   ByteRange range, PieceExtent extent);

}  // namespace leat
