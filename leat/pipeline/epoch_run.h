// One epoch of one rank: sends the planned reads and delivers in order.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "leat/pipeline/batch_queue.h"
#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/epoch_plan.h"
#include "leat/pipeline/record_reads.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_reads.h"

namespace leat {

/// The planner of one epoch and the batches that it has in preparation.
///
/// The planner walks the steps in order. For each step it reserves the batch's
/// slots, then for each sample its bytes, then sends the reads: memory is
/// granted strictly in plan order, and a read that was sent never waits for
/// memory. Reads complete in any order, the executor fills the slots, and
/// batches leave in strict order.
///
/// Threads: any; head() and take() one at a time. Lifetime: the context must
/// outlive it. Destruction cancels what is in flight and
///           returns when all of it is resolved.
class EpochRun {
 public:
  EpochRun(const RunContext& context, EpochPlanOptions plan,
           const PlanLimits& limits);
  ~EpochRun();
  EpochRun(const EpochRun&) = delete;
  EpochRun& operator=(const EpochRun&) = delete;

  std::uint64_t epoch() const { return plan_.epoch(); }
  const Steps& steps() const { return plan_.steps(); }

  /// From now on the whole epoch may be planned.
  void adopt() { queue_.adopt(); }
  /// Changes PlanLimits::lookahead.
  void look_ahead(std::uint64_t samples) { queue_.look_ahead(samples); }
  /// Cancels what is in flight: every wait_within() ends soon.
  void stop() { stop_.request_stop(); }

  using State = BatchQueue::State;
  using Asker = BatchQueue::Asker;
  /// Waits until the next batch is ready, successful or not, or none is left.
  State wait_within(Nanoseconds timeout, Asker asker = Asker::kTraining) {
    return queue_.wait_within(timeout, asker);
  }
  /// The next batch. REQUIRES: wait_within() returned kReady.
  BatchWork& head() { return queue_.head(); }
  /// Takes the next batch. REQUIRES: wait_within() returned kReady.
  std::shared_ptr<BatchWork> take();

  /// Samples of batches that have begun and are not taken yet.
  std::uint64_t untaken() const { return queue_.untaken(); }
  /// True once the planner has sent all requests of the epoch.
  bool has_planned_all() const { return has_planned_all_; }
  /// The dealing it was made with, for the next epoch to continue.
  /// REQUIRES: has_planned_all().
  std::unique_ptr<HolderDealing> take_dealing() { return plan_.take_dealing(); }
  RunRequests requests() const { return reads_.requests(); }

 private:
  using BatchRef = std::shared_ptr<BatchWork>;

  void plan(const std::stop_token& stop);
  BatchRef begin_batch(std::uint64_t step);
  Result<void> plan_batch(BatchWork& batch, std::size_t& planned,
                          const std::stop_token& stop);
  Result<void> learn_shapes(BatchWork& batch, std::size_t& planned,
                            const std::stop_token& stop);
  std::optional<Error> learn_from(SampleWork& sample);
  Result<void> reserve_slots(BatchWork& batch);
  bool wait_for_leave(const std::stop_token& stop);
  void begin_fetch(SampleWork& sample);
  Result<void> fetch(SampleWork& sample);
  /// Counts off the sender's own share of `pending`.
  void sent_all(SampleWork& sample);
  void arrive(const BatchRef& batch, SampleWork& sample, TimePoint now);
  void run_ops(const BatchRef& batch, SampleWork& sample);
  void submit(const BatchRef& batch, SampleWork& sample, bool may_wait);
  void run_put_off(const BatchRef& batch);
  /// Another sample is read for the row. REQUIRES: may_replace() the one that
  /// has failed.
  void replace(const BatchRef& batch, SampleWork& sample);
  /// Ends the row, or has another sample read for it. Returns when, by the
  /// clock.
  TimePoint end_row(const BatchRef& batch, SampleWork& sample);
  TimePoint finish(const BatchRef& batch, SampleWork& sample);

  const RunContext& context_;
  const bool needs_thread_;  ///< Filling a row is work.
  std::stop_source stop_;
  EpochPlan plan_;
  BatchQueue queue_;
  SampleReads reads_;
  RecordReads records_;  ///< Around `reads_`.

  // The planner's own.
  std::uint64_t next_order_ = 0;
  std::uint64_t planned_samples_ = 0;

  std::atomic<bool> has_planned_all_ = false;
  std::jthread planner_;  // Last: joined before the rest dies.
};

}  // namespace leat
