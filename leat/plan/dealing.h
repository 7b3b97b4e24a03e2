// Which positions of a step go to which rank.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/ids.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

/// The rank that a sample is at home on, in every epoch: evenly drawn from its
/// number alone. REQUIRES: world_size > 0.
std::uint32_t home_of(SampleId sample, std::uint32_t world_size);

/// Deals a step's samples to the ranks where they are at home, as far as each
/// rank still gets as many as Steps says; the rest fills up in order. Every
/// step keeps its samples, and each goes to one rank. The last step of an
/// epoch, if it is not whole, is dealt as Steps does.
///
/// A function of the step, the order and the world size: so all ranks agree
/// without a message, and a state needs to keep nothing of it. What a rank does
/// not share (the statistics of a BatchNorm) no longer comes from samples drawn
/// alike for all ranks.
///
/// The positions of `rank`, rising. O(global batch).
/// REQUIRES: step < steps.count().
std::vector<std::uint64_t> positions_at_home(const Steps& steps,
                                             std::uint64_t step,
                                             const EpochOrder& order);

}  // namespace leat
