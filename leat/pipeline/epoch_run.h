// One epoch of one rank: sends what the plan says and delivers in its order.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/cache_hits.h"
#include "leat/pipeline/plan_memory.h"
#include "leat/pipeline/run_context.h"
#include "leat/plan/fetch_ahead.h"
#include "leat/plan/holder_dealing.h"
#include "leat/plan/next_use.h"
#include "leat/plan/order.h"
#include "leat/plan/ready_first.h"
#include "leat/plan/steps.h"

namespace leat {

/// Requests that a run has sent.
struct RunRequests {
  std::uint64_t sent = 0;     ///< To the store; each read counted once.
  std::uint64_t retried = 0;  ///< Sent again after a failure.
  std::uint64_t bytes = 0;    ///< Asked of the store.
  std::uint64_t misses = 0;   ///< Reads that no cache had an answer to.
  // Reads that a cache answered instead.
  std::uint64_t ram_hits = 0;
  std::uint64_t disk_hits = 0;
  std::uint64_t peer_hits = 0;
  std::uint64_t decoded_hits = 0;  ///< Those of them by a decoded record.

  RunRequests& operator+=(const RunRequests& more);
};

/// How far a run may plan, beside what memory allows.
struct PlanLimits {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// Samples in all, and about as many reads, until adopt() lifts that.
  std::uint64_t samples = kNone;
  /// Samples planned and not yet taken. REQUIRES: at least those of a batch, or
  /// none would ever be whole.
  std::uint64_t lookahead = kNone;
  /// The samples that it has asked for, among those drawn: a batch is drawn
  /// when it is waited for. None: only the two bounds above hold.
  std::optional<FetchAhead> fetch_ahead = std::nullopt;
};

/// The planner of one epoch and the batches it has under way.
///
/// The planner walks the steps in order. For each it reserves the batch's
/// slots, then for each sample its bytes, then sends the reads: memory is given
/// strictly in plan order, and a read never waits for memory once it is sent.
/// Reads complete in any order, the executor fills the slots, and batches leave
/// in strict order.
///
/// Threads:  any; head() and take() one at a time.
/// Lifetime: the context outlives it. Destruction cancels what is in flight and
///           returns when the last of it is resolved.
class EpochRun {
 public:
  /// With `next_use`, reads say when they are wanted and when again. `dealing`
  /// says which samples are ours where the context's locality deals to holders,
  /// else it is null. With `ready_first` what is cached comes first, within it.
  EpochRun(const RunContext& context, std::uint64_t epoch, EpochOrder order,
           Steps steps, PlanLimits limits,
           std::optional<NextUse> next_use = std::nullopt,
           std::unique_ptr<HolderDealing> dealing = nullptr,
           std::optional<ReadyFirst> ready_first = std::nullopt);
  ~EpochRun();
  EpochRun(const EpochRun&) = delete;
  EpochRun& operator=(const EpochRun&) = delete;

  std::uint64_t epoch() const { return epoch_; }
  const Steps& steps() const { return steps_; }

  /// From now on all of the epoch may be planned.
  void adopt();
  /// Changes PlanLimits::lookahead.
  void look_ahead(std::uint64_t samples);
  /// Cancels what is in flight: every wait_within() ends soon.
  void stop() { stop_.request_stop(); }

  enum class State : std::uint8_t { kNotYet, kReady, kEnd };
  /// Waits until the next batch is ready, well or not, or none is left.
  State wait_within(Nanoseconds timeout);
  /// The next batch. REQUIRES: wait_within() said kReady.
  BatchWork& head();
  /// Takes the next batch. REQUIRES: wait_within() said kReady.
  std::shared_ptr<BatchWork> take();

  /// Samples of batches that were begun and not yet taken.
  std::uint64_t untaken() const;
  /// True once the planner has sent all that the epoch needs.
  bool has_planned_all() const { return has_planned_all_; }
  /// The dealing that it was made with, for the next epoch to go on with.
  /// REQUIRES: has_planned_all().
  std::unique_ptr<HolderDealing> take_dealing() { return std::move(dealing_); }
  RunRequests requests() const;

 private:
  bool begin_dealing(const std::stop_token& stop);
  void plan(const std::stop_token& stop);
  std::vector<std::uint64_t> positions_of(std::uint64_t step);
  bool is_ours(SampleId sample) const;
  bool is_cached(std::uint64_t position) const;
  bool is_coming(std::uint64_t position) const;
  std::vector<RecordId> records_of(std::uint64_t position) const;
  void tell_board();
  ReadTurn turn_after(const SampleWork& sample);
  std::uint64_t most_to_make() const LEAT_REQUIRES(mutex_);
  Result<void> plan_batch(BatchWork& batch, std::size_t& planned,
                          const std::stop_token& stop);
  Result<void> learn_shapes(BatchWork& batch, std::size_t& planned,
                            const std::stop_token& stop);
  std::optional<Error> learn_from(const SampleWork& sample);
  Result<void> reserve_slots(BatchWork& batch, const std::stop_token& stop);
  Result<Reservation> reserve(std::uint64_t bytes, std::string_view what,
                              const std::stop_token& stop);
  void begin_fetch(SampleWork& sample, const std::stop_token& stop);
  Result<void> fetch(SampleWork& sample, const std::stop_token& stop);
  Result<void> fetch_field(SampleWork& sample, std::size_t field,
                           const std::stop_token& stop);
  Result<bool> fetch_record(SampleWork& sample, std::size_t field,
                            ByteRange range, const std::stop_token& stop);
  Result<void> find_record(SampleWork& sample, std::size_t field,
                           ByteRange range, std::unique_ptr<RecordWork> work,
                           std::uint64_t record_bytes,
                           const std::stop_token& stop);
  Result<void> fetch_to_keep(SampleWork& sample, std::size_t field,
                             ByteRange range, std::unique_ptr<RecordWork> work,
                             const std::stop_token& stop);
  bool find_made(SampleWork& sample, RecordWork& work,
                 std::function<void()> send,
                 std::function<void(Result<void>)> done);
  std::function<void(Result<void>)> arrival_of(SampleWork& sample);
  Result<void> fetch_from_piece(SampleWork& sample, std::size_t field,
                                const std::stop_token& stop);
  Result<std::shared_ptr<Piece>> piece_for(SampleId sample, ByteRange range,
                                           const std::stop_token& stop);
  void release_planned_piece(SampleId sample);
  bool shares_piece(const SampleWork& sample) const;
  std::optional<ReadHint> hint_for(const SampleWork& sample);
  std::optional<ReadHint> hint_for_piece(SampleId first);
  ReadHint hint_for(SampleId sample, std::uint64_t position,
                    std::uint64_t after);
  /// Calls `done` once for each of the `reads`.
  void send_reads(ByteRange range, std::uint32_t reads,
                  std::span<std::byte> into, ReadObserver* observer,
                  std::optional<ReadHint> hint,
                  const std::function<void(Result<void>)>& done);
  void arrive(const std::shared_ptr<BatchWork>& batch, SampleWork& sample,
              TimePoint now);
  void run_ops(const std::shared_ptr<BatchWork>& batch, SampleWork& sample);
  void submit(const std::shared_ptr<BatchWork>& batch, SampleWork& sample,
              bool may_wait);
  bool puts_off(BatchWork& batch, SampleWork& sample);
  void run_put_off(const std::shared_ptr<BatchWork>& batch);
  std::vector<std::shared_ptr<BatchWork>> batches_left() const;
  /// When it was finished, by the clock.
  TimePoint finish(const std::shared_ptr<BatchWork>& batch, SampleWork& sample);
  Result<void> wait_for_leave(const std::stop_token& stop);
  void draw_batch() LEAT_REQUIRES(mutex_);

  struct PlannedPiece {
    std::shared_ptr<Piece> piece;
    std::uint64_t samples_left;  // Not yet planned.
  };

  const RunContext& context_;
  const std::uint64_t epoch_;
  const EpochOrder order_;
  const Steps steps_;
  const bool needs_thread_;  ///< Filling a row is work.
  std::stop_source stop_;

  // The planner's own.
  std::optional<NextUse> next_use_;
  std::unique_ptr<HolderDealing> dealing_;
  std::optional<ReadyFirst> ready_first_;
  /// By row of the batch that is planned, if dealt to holders.
  std::vector<AccessTime> dealt_next_;
  std::map<std::uint64_t, PlannedPiece> pieces_;
  std::shared_ptr<BatchWork> planning_;
  PlanMemory memory_;
  std::uint64_t next_order_ = 0;
  std::uint64_t planned_samples_ = 0;

  std::atomic<bool> has_planned_all_ = false;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> retried_ = 0;
  CacheHits hits_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<BatchWork>> batches_ LEAT_GUARDED_BY(mutex_);
  PlanLimits limits_ LEAT_GUARDED_BY(mutex_);
  // Samples of batches that were begun, and of those that were taken.
  std::uint64_t begun_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t taken_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t taken_batches_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t largest_batch_ LEAT_GUARDED_BY(mutex_) = 0;
  /// Counts those under way.
  std::uint64_t to_make_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t under_way_ LEAT_GUARDED_BY(mutex_) = 0;  ///< Samples.
  SampleWork* held_ LEAT_GUARDED_BY(mutex_) = nullptr;
  bool has_held_arrived_ LEAT_GUARDED_BY(mutex_) = false;
  bool has_ended_ LEAT_GUARDED_BY(mutex_) = false;
  std::jthread planner_;  // Last: joined before the rest dies.
};

}  // namespace leat
