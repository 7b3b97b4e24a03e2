// The batches of a run that are in preparation, and what may be planned.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/pipeline/batch_work.h"
#include "leat/plan/fetch_ahead.h"
#include "leat/plan/steps.h"

namespace leat {

/// How far a run may plan, apart from the memory limit.
struct PlanLimits {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// Samples in all, and about as many reads, until adopt() lifts this.
  std::uint64_t samples = kNone;
  /// Samples planned and not yet taken. The batch that is taken next is planned
  /// to its end even if it has more, or it would never be complete.
  /// REQUIRES: not 0.
  std::uint64_t lookahead = kNone;
  /// The number requested, of the samples drawn: a batch is drawn when it is
  /// waited for. None: only the two limits above apply.
  std::optional<FetchAhead> fetch_ahead = std::nullopt;
};

/// The planner adds batches and the consumer takes them, in plan order. The
/// queue knows how many of their samples are unfinished.
///
/// Threads: any; one planner, and one consumer at a time.
class BatchQueue {
 public:
  /// `makes_little`: plans no more records to be made than keep threads and
  /// connections busy.
  BatchQueue(const Steps& steps, const PlanLimits& limits, bool makes_little);

  // For the consumer.
  enum class State : std::uint8_t { kNotYet, kReady, kEnd };
  enum class Asker : std::uint8_t { kTraining, kOnlooker };
  /// Waits until the next batch is ready, successful or not, or none is left.
  /// An onlooker changes nothing of what is drawn, or fetched sooner.
  State wait_within(Nanoseconds timeout, Asker asker = Asker::kTraining);
  /// The next batch. REQUIRES: wait_within() returned kReady.
  BatchWork& head();
  struct Taken {
    std::shared_ptr<BatchWork> batch;
    std::shared_ptr<BatchWork> next;  ///< Now the first; null: none yet.
  };
  /// Takes the next batch. REQUIRES: as above.
  Taken take();
  /// From now on the whole epoch may be planned.
  void adopt();
  /// Changes PlanLimits::lookahead.
  void look_ahead(std::uint64_t samples);
  /// Samples of batches that have begun and are not taken yet.
  std::uint64_t untaken() const;

  // For the planner.
  /// Waits until another sample may be planned, after `planned` samples for
  /// which `reads` reads were sent. False if stopped.
  bool wait_for_leave(std::uint64_t planned, std::uint64_t reads,
                      const std::stop_token& stop);
  void begin(const std::shared_ptr<BatchWork>& batch);
  /// No more batches will begin.
  void end();
  /// The sample's bytes are needed before its ops run: see arrived().
  void hold(SampleWork& sample);
  void wait_for_held();
  /// Counts the sample among those of which a record will be made.
  void add_to_make(SampleWork& sample);

  // For threads that bring bytes and run ops.
  /// True if the sample is held: then the planner continues with it.
  bool arrived(const SampleWork& sample);
  /// A row is finished; `is_last` of its batch. Must be the last use of a
  /// sample: wait_until_finished() may return immediately.
  void finish(bool was_to_make, bool is_last);
  /// Whether a row without memory waits for its batch's turn, when no batch
  /// delivered earlier holds any, and it continues without. No row waits once
  /// `stop` has fired.
  bool puts_off(BatchWork& batch, SampleWork& sample,
                const std::stop_token& stop);
  std::vector<SampleWork*> take_put_off(BatchWork& batch);

  std::vector<std::shared_ptr<BatchWork>> batches() const;
  /// Waits until no sample is in preparation.
  void wait_until_finished();

 private:
  void draw_batch() LEAT_REQUIRES(mutex_);
  std::uint64_t most_to_make() const LEAT_REQUIRES(mutex_);

  const Steps steps_;
  const bool makes_little_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<BatchWork>> batches_ LEAT_GUARDED_BY(mutex_);
  PlanLimits limits_ LEAT_GUARDED_BY(mutex_);
  // Samples of batches that have begun, and of those that were taken.
  std::uint64_t begun_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t taken_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t taken_batches_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t largest_batch_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t to_make_ LEAT_GUARDED_BY(mutex_) = 0;  // Among those under way.
  std::size_t under_way_ LEAT_GUARDED_BY(mutex_) = 0;  // Samples.
  const SampleWork* held_ LEAT_GUARDED_BY(mutex_) = nullptr;
  bool has_held_arrived_ LEAT_GUARDED_BY(mutex_) = false;
  bool has_ended_ LEAT_GUARDED_BY(mutex_) = false;
};

}  // namespace leat
