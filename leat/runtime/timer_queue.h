// Calls functions at a later time, from one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// Runs each function when its time has come, in order of time.
///
/// Threads:  any. The functions run on the queue's one thread and must not
///           block.
/// Lifetime: destruction drops functions that have not run yet, and joins. An
///           owner therefore must not rely on its timer to resolve anything
///           that has to be resolved.
class TimerQueue {
 public:
  using Id = std::uint64_t;

  explicit TimerQueue(std::string thread_name = "leat-timer");
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  /// Runs `function` at `due` (of SteadyClock) or soon after.
  Id at(TimePoint due, std::function<void()> function);
  Id after(Nanoseconds delay, std::function<void()> function);

  /// True if the function had not started and now never will.
  bool cancel(Id id);

 private:
  void run(const std::stop_token& stop);

  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<TimePoint, Id>, std::function<void()>> waiting_
      LEAT_GUARDED_BY(mutex_);
  std::map<Id, TimePoint> due_of_ LEAT_GUARDED_BY(mutex_);
  Id next_id_ LEAT_GUARDED_BY(mutex_) = 1;
  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
