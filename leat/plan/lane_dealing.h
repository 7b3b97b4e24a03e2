// Deals the steps of a block shuffle so that ranks share few pieces.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

/// Sorts the samples of each step by their places in the line of lanes and cuts
/// them into equal shares, so rank r of W always reads the same part of the
/// line: about [r * C / W, (r + 1) * C / W) of C lanes. If W divides C, ranks
/// share no piece but where lanes end.
///
/// Every step keeps its samples, whatever W is, and each rank as many of them
/// as Steps gives it: a tail that is kept is cut along the line too, or its
/// samples would be stray reads. Padding lies behind the line. Depends on order
/// and steps alone, so all ranks agree without messages, and a state need not
/// store it.
///
/// It remembers the cut of each step from the latest one that was asked for on.
///
/// Threads: one at a time.
class LaneDealing {
 public:
  /// REQUIRES: order.has_lanes(), and steps are of samples, not of rows.
  LaneDealing(EpochOrder order, Steps steps)
      : order_(std::move(order)), steps_(std::move(steps)) {}

  /// The positions of this rank, rising. O(global batch). REQUIRES: step <
  /// steps.count(), and not below that of an earlier call.
  std::vector<std::uint64_t> positions_of(std::uint64_t step);

  /// Whether this rank gets a position. Takes O(global batch) once for each
  /// step. REQUIRES: the position is of a step that positions_of() may still be
  /// called with.
  bool is_ours(std::uint64_t position);

 private:
  /// The keys of this rank's samples in a step: from `begin` up to `end`.
  struct Cut {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::uint64_t key_of(std::uint64_t position, const StepSlice& all) const;
  Cut cut(std::uint64_t step);
  const Cut& cut_of(std::uint64_t step);

  const EpochOrder order_;
  const Steps steps_;
  std::uint64_t first_step_ = 0;  ///< That `cuts_` has.
  std::deque<Cut> cuts_;
  std::vector<std::uint64_t> keys_;  ///< A step's; kept for its memory.
};

}  // namespace leat
