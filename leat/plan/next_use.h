// Finds the next read of a sample, which tells a cache the future.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "leat/plan/cache_policy.h"
#include "leat/plan/divisor.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {

/// The ranks and epochs in which to look for reads.
struct NextUseOptions {
  std::uint64_t samples = 0;  ///< N: of one epoch.
  /// If the order is drawn, the number of samples in the dataset. N is then
  /// another number, and `epoch_time` must be given.
  std::uint64_t dataset_samples = 0;
  OrderOptions order = {};
  std::shared_ptr<const BlockMap> blocks = nullptr;  ///< For a block shuffle.
  /// If `blocks` cover a part of the dataset (kStream alone): the number of
  /// samples before it. Samples are then numbered within the part, positions
  /// within the dataset. N may then be too large: samples that a dropped tail
  /// leaves out at the end are treated as if they were read.
  std::uint64_t first_sample = 0;
  std::uint64_t global_batch = 0;  ///< G.
  Tail tail = Tail::kKeep;
  RankRun ranks = {};
  /// LaneDealing deals the steps of a block shuffle: block_at_or_after() goes
  /// by EpochOrder::homes_of().
  bool is_in_lanes = false;
  /// The running epoch and the position that its steps start at, as resumed.
  std::uint64_t epoch = 0;
  std::uint64_t start = 0;
  /// The first epoch that is not examined: the end of training, or the horizon.
  /// One rank of W meets a sample again after W epochs on average, so a horizon
  /// below 4 * W takes more than 2 % of uses for the last ones.
  std::uint64_t end_epoch = 0;
  /// From one epoch to the next on the clock (AccessTime); 0: N.
  AccessTime epoch_time = 0;
};

/// The next read of a sample, or of a block: a walk over epochs, each O(1) by
/// the inverse of its order. For all ranks the walk ends in the first epoch;
/// for one of W, in the epoch whose slices contain the position, after W on
/// average. A block shuffle adds the cost of EpochOrder::position_of; blocks
/// have a closed form.
///
/// A drawn order has no inverse, so the positions of each sample are looked up
/// in the running epoch and the next, as they are dealt there. For a sample
/// that is read in neither, or in an epoch that has not been given, the answer
/// is the end of the first epoch that was not examined, not "never", because
/// the read may come.
///
/// Memory: the orders from the current epoch to the furthest one examined, and
/// a few before it.
/// Threads: one at a time.
class NextUse {
 public:
  /// Errors:
  ///   kInvalidArgument  no ranks, or past the world size; else as Steps::make
  static Result<NextUse> make(const NextUseOptions& options);

  /// The first read of `sample` at or after `position` of `epoch`, or kNever.
  /// To find the read after another, pass the position behind that one. Padding
  /// counts as read at the last position of its epoch. REQUIRES: sample < N;
  /// epoch >= that of the options and of earlier calls.
  AccessTime at_or_after(SampleId sample, std::uint64_t epoch,
                         std::uint64_t position);

  /// The first position at or after which these ranks read in the window of the
  /// block: no sample of it is read before. kNever if none is left.
  /// REQUIRES: a block shuffle; the rest as above.
  AccessTime block_at_or_after(std::uint64_t block, std::uint64_t epoch,
                               std::uint64_t position);

  /// The clock of the job, for padding too: see AccessTime.
  AccessTime time_of(std::uint64_t epoch, std::uint64_t position) const;

 private:
  /// The steps of an epoch, for the first and the last of the ranks.
  struct Cut {
    Steps first;
    Steps last;
    std::uint64_t start = 0;
    StepSlice slice(std::uint64_t step) const {
      return {first.slice(step).begin, last.slice(step).end};
    }
    /// The positions that these ranks read in each step before the last, from
    /// its beginning: most look-ups end with them. If there are no such steps,
    /// `alike_end` is `start`.
    Divisor global_batch{1};
    std::uint64_t alike_end = 0;
    StepSlice in_step;
    bool is_elsewhere(std::uint64_t position) const {
      if (position < start || position >= alike_end) return false;
      const std::uint64_t in = global_batch.divide(position - start).remainder;
      return in < in_step.begin || in >= in_step.end;
    }
  };
  static Cut cut(const NextUseOptions& options, const Steps& first,
                 const Steps& last, std::uint64_t start);
  NextUse(const NextUseOptions& options, const Cut& running, const Cut& later)
      : options_(options),
        running_(running),
        later_(later),
        first_epoch_(options.epoch) {}

  AccessTime read_at(std::uint64_t epoch, std::uint64_t at,
                     std::uint64_t from) const;
  AccessTime drawn_at_or_after(SampleId sample, std::uint64_t epoch,
                               std::uint64_t position);
  /// An epoch of a drawn order.
  struct Drawn {
    DrawnPositions positions;
    /// By position: whether these ranks read there; empty: dealt in runs.
    std::vector<bool> is_ours = {};
  };
  bool is_of_ranks(const Drawn& drawn, std::uint64_t epoch,
                   std::uint64_t position) const;
  std::vector<bool> ours_in(std::uint64_t epoch, const DrawnEpoch& told) const;
  bool is_home(const EpochOrder& order, std::uint64_t block) const;
  const Drawn* drawn_in(std::uint64_t epoch);
  const EpochOrder& order_of(std::uint64_t epoch);
  const Cut& cut_of(std::uint64_t epoch) const {
    return epoch == options_.epoch ? running_ : later_;
  }
  void forget_before(std::uint64_t epoch);
  std::uint64_t in_steps(const Cut& cut, PositionRun run,
                         std::uint64_t from) const;
  std::uint64_t in_padding(const Cut& cut, PositionRun run,
                           std::uint64_t from) const;
  std::uint64_t first_read(const Cut& cut, PositionRun run,
                           std::uint64_t from) const;

  NextUseOptions options_;
  Cut running_;
  Cut later_;
  std::uint64_t first_epoch_;  // The epoch of orders_.front().
  std::vector<EpochOrder> orders_;
  std::map<std::uint64_t, Drawn> drawn_;  // By epoch.
};

}  // namespace leat
