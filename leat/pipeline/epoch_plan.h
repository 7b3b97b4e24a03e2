// The samples of a run by position, and when they are read again.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_work.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/lane_dealing.h"
#include "leat/plan/next_use.h"
#include "leat/plan/order.h"
#include "leat/plan/ready_first.h"
#include "leat/plan/steps.h"

namespace leat {

/// A run goes by these.
struct EpochPlanOptions {
  std::uint64_t epoch = 0;
  EpochOrder order;
  Steps steps;
  /// Finds when reads are wanted again; none: hints omit it.
  std::optional<NextUse> next_use = std::nullopt;
  /// Decides which samples are ours if the context's locality deals to holders;
  /// otherwise null.
  std::unique_ptr<HolderDealing> dealing = nullptr;
  /// Moves cached samples first, within its window.
  std::optional<ReadyFirst> ready_first = std::nullopt;
};

/// Walks the steps of an epoch.
///
/// Threads: the planner's, except for epoch(), order() and steps(): any.
/// Lifetime: the context must outlive it.
class EpochPlan {
 public:
  EpochPlan(const RunContext& context, EpochPlanOptions options);

  std::uint64_t epoch() const { return epoch_; }
  const EpochOrder& order() const { return order_; }
  const Steps& steps() const { return steps_; }

  /// Brings the dealing to where this run begins. False if stopped on the way.
  bool begin(const std::stop_token& stop);
  /// Announces what this run will read, to jobs that share the cache.
  void tell_board() const;

  /// The positions of this rank in the next step. If cached samples come first,
  /// calls the two with positions. REQUIRES: called for one step after another.
  using IsSo = std::function<bool(std::uint64_t position)>;
  std::vector<std::uint64_t> positions_of(std::uint64_t step,
                                          const IsSo& is_cached,
                                          const IsSo& is_coming);
  /// Whether this rank reads what stands at a position, in this step or a later
  /// one. REQUIRES: context.pieces; a position of this run's steps.
  bool is_mine(std::uint64_t position);
  /// Whether ranks read pieces in parts of their own, with little between them.
  bool shares_lanes() const { return lanes_.has_value(); }
  /// The positions that were skipped so far.
  std::vector<std::uint64_t> left_behind() const;
  bool takes_cached_first() const { return ready_first_.has_value(); }

  bool has_hints() const { return next_use_.has_value(); }
  std::optional<ReadHint> hint_for(const SampleWork& sample);
  /// The hint for a piece whose first sample this is.
  std::optional<ReadHint> hint_for_piece(SampleId first);
  /// When the sample is read again after this read.
  ReadTurn turn_after(const SampleWork& sample);

  std::unique_ptr<HolderDealing> take_dealing() { return std::move(dealing_); }

 private:
  bool is_ours(SampleId sample) const;
  ReadHint hint_at(SampleId sample, std::uint64_t position,
                   std::uint64_t after);

  const RunContext& context_;
  const std::uint64_t epoch_;
  const EpochOrder order_;
  const Steps steps_;
  std::optional<NextUse> next_use_;
  std::unique_ptr<HolderDealing> dealing_;
  /// Set if several ranks read pieces of a block shuffle.
  std::optional<LaneDealing> lanes_;
  std::optional<ReadyFirst> ready_first_;
  /// By row of the planned batch, if dealt to holders.
  std::vector<AccessTime> dealt_next_;
};

}  // namespace leat
