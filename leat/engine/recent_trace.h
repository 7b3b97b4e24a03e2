// The last steps of a loader, for readers of its job's page.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>

#include "leat/agent/wire/job_trace.h"
#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/engine/trace.h"

namespace leat {

/// Keeps the last JobTrace::kMostSteps steps while somebody looks: nobody does
/// until see() is called, and for some seconds after each call.
///
/// Threads: any.
class RecentTrace {
 public:
  /// Cheap; asked before a batch is made ready for add().
  bool is_watched(TimePoint now) const {
    return now.time_since_epoch().count() <
           watched_until_.load(std::memory_order_relaxed);
  }
  /// REQUIRES: in the order in which batches were given.
  void add(const TracedBatch& batch);
  /// The steps, in times of the engine's clock; from the oldest on.
  JobTrace see();

 private:
  /// Times by that clock, as nanoseconds: see() makes them microseconds.
  mutable Mutex mutex_;
  std::deque<TraceStep> steps_ LEAT_GUARDED_BY(mutex_);
  std::atomic<Nanoseconds::rep> watched_until_ = 0;
};

}  // namespace leat
