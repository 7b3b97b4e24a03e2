// The account of a loader: time, samples, waits, epoch by epoch.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/engine/loader/kept_epochs.h"
#include "leat/engine/loader/step_trace.h"
#include "leat/engine/loader_stats.h"
#include "leat/engine/loader_totals.h"
#include "leat/engine/rank_limits.h"
#include "leat/metrics/metrics.h"
#include "leat/metrics/rolling_stalls.h"
#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/epoch_run.h"

namespace leat {

struct AccountOptions {
  bool is_first_rank = true;  ///< It reports for the others, too.
  bool tells_verdict = true;  ///< See LoaderOptions.
  bool has_hashes = true;
};

/// Counts what training asks for and receives. The caller reports each event in
/// the order in which it happens.
///
/// Threads:  any.
/// Lifetime: `metrics` outlives it.
class Account {
 public:
  Account(AccountOptions options, Metrics& metrics);

  /// Call before the first epoch. Errors: as StepTrace::open()
  Result<void> open_trace(const std::string& file, std::uint32_t rank);
  /// Call after the last batch.
  void close_trace();
  JobTrace recent_steps() { return trace_.see_recent(); }

  /// An epoch that was asked for at `asked` begins or continues.
  void begin_epoch(std::uint64_t epoch, TimePoint asked, ThreadTimes threads);
  /// The running epoch is left before its end.
  void leave_epoch();
  /// Reports how many bad samples were replaced, in an epoch that is left
  /// before its end.
  void tell_left_early() const;
  /// The epoch had no batch left when the last one was asked for. Returns the
  /// epoch's totals.
  EpochStats end_epoch(const RankLimits& limits, ThreadTimes threads);

  /// Training asks for a batch; does nothing if this was counted already. The
  /// step is late if `is_late`, which is called at most once, returns true.
  void begin_wait(std::uint64_t window, const std::function<bool()>& is_late);
  /// From now until end_scan_wait() the wait is for shards to be indexed.
  void begin_scan_wait();
  void end_scan_wait();

  /// A step of training between two batches.
  struct Step {
    Nanoseconds busy{0};    ///< Training, before the call.
    Nanoseconds wait{0};    ///< From the call until it had the batch.
    bool is_late = false;   ///< Training had to wait,
    bool is_bound = false;  ///< and nothing could have come earlier.
  };
  /// Hands over the batch that was asked for. Nullopt for the first one.
  std::optional<Step> deliver(const BatchWork& work);

  /// The requests of the epoch's runs; `ahead` are those of the next epoch.
  void set_requests(const RunRequests& requests, std::uint64_t ahead);
  void set_lookahead(std::uint64_t samples);

  /// The last KeptEpochs::kMost epochs.
  std::vector<EpochStats> stats() const;
  RecentStalls recent() const;
  std::vector<StepWait> take_waits();
  /// Adds the counts since the loader was opened; `reads` never shrinks.
  void add_to(LoaderTotals& totals);

 private:
  void count_wait(TimePoint now, const StallTimes& times) LEAT_REQUIRES(mutex_);
  StepWait keep_wait(const StallTimes& times) LEAT_REQUIRES(mutex_);
  void count_samples(const BatchWork& work) LEAT_REQUIRES(mutex_);
  void end_training() LEAT_REQUIRES(mutex_);
  void tell_substituted() const LEAT_REQUIRES(mutex_);

  const AccountOptions options_;
  Metrics& metrics_;
  mutable Mutex mutex_;
  StepTrace trace_;
  /// The last of `epochs_` is the running epoch.
  bool is_begun_ LEAT_GUARDED_BY(mutex_) = false;
  TimePoint begun_ LEAT_GUARDED_BY(mutex_);
  ThreadTimes threads_at_begin_ LEAT_GUARDED_BY(mutex_);
  std::optional<TimePoint> waiting_since_ LEAT_GUARDED_BY(mutex_);
  bool waits_for_shards_ LEAT_GUARDED_BY(mutex_) = false;
  bool is_late_ LEAT_GUARDED_BY(mutex_) = false;
  bool is_window_full_ LEAT_GUARDED_BY(mutex_) = false;
  /// When the last batch of this iteration was handed over.
  std::optional<TimePoint> delivered_at_ LEAT_GUARDED_BY(mutex_);
  Nanoseconds training_ LEAT_GUARDED_BY(mutex_){0};
  KeptEpochs epochs_ LEAT_GUARDED_BY(mutex_);
  std::deque<StepWait> waits_ LEAT_GUARDED_BY(mutex_);
  RollingStalls rolling_ LEAT_GUARDED_BY(mutex_){SteadyClock().now()};
  std::uint64_t reads_over_ LEAT_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat
