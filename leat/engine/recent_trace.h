// The last steps of a loader, for viewers of its job's page.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>

#include "leat/agent/wire/job_trace.h"
#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/engine/trace.h"

namespace leat {

/// Keeps the last JobTrace::kMostSteps steps while somebody is watching: from a
/// call of see() until some seconds after it.
///
/// Threads: any.
class RecentTrace {
 public:
  /// Cheap; called before a batch is prepared for add().
  bool is_watched(TimePoint now) const {
    return now.time_since_epoch().count() <
           watched_until_.load(std::memory_order_relaxed);
  }
  /// REQUIRES: called in the order in which batches were delivered.
  void add(const TracedBatch& batch);
  /// The steps, oldest first, in times of the engine's clock.
  JobTrace see();

 private:
  /// Nanoseconds of that clock, which see() turns into microseconds.
  mutable Mutex mutex_;
  std::deque<TraceStep> steps_ LEAT_GUARDED_BY(mutex_);
  std::atomic<Nanoseconds::rep> watched_until_ = 0;
};

}  // namespace leat
