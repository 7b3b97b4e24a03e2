// Threads that run tasks in the order of the plan.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// Runs tasks on a fixed number of threads, some of which may be told to rest.
/// Among waiting tasks, the first in the plan runs first.
///
/// Has no bound of its own: each submitter holds a bounded resource (a
/// reservation of memory) for every task.
///
/// Threads: any. Lifetime: destruction lets running tasks finish, drops the
/// waiting ones and
///           joins. A dropped task is destroyed, which frees what it holds.
class Executor {
 public:
  /// A task's time on a thread. The clock is read once a task: a task begins
  /// when the one before it ended, if that thread did not wait in between.
  struct Turn {
    std::size_t thread;  ///< In [0, threads).
    TimePoint began;
    /// Set by a task that has just read the clock as the last thing it did.
    std::optional<TimePoint> ended{};
    /// Lets a task be a function of the thread alone.
    operator std::size_t() const { return thread; }  // NOLINT: see above.
  };
  using Task = std::function<void(Turn& turn)>;

  /// REQUIRES: threads > 0. `metrics` may be null, or else outlives the
  /// executor. `most` is the upper bound for set_active(); 0: `threads`.
  Executor(std::string name, std::size_t threads, Metrics* metrics = nullptr,
           std::size_t most = 0);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Queues `task`; smaller `order` runs sooner, equal ones as they came.
  void submit(std::uint64_t order, Task task);

  /// The executor whose thread calls this; null on any other thread.
  static const Executor* here();

  /// The most threads that may ever work.
  std::size_t threads() const { return most_; }

  /// The number of threads that may work from now on; a running task is
  /// finished first. Threads are created when they are first needed; if the
  /// system has no more, fewer threads work, and the log says so once.
  /// REQUIRES: in [1, threads()].
  void set_active(std::size_t threads);
  std::size_t active() const;

  /// Totals over the threads since they started. Threads: any.
  struct Work {
    std::uint64_t tasks = 0;  ///< Finished.
    Nanoseconds busy{0};      ///< In tasks, summed over threads.
    Nanoseconds cpu{0};       ///< On a core, summed over threads.
  };
  Work work() const;

 private:
  struct Waiting {
    std::uint64_t order;
    std::uint64_t arrival;
    Task task;
    bool operator<(const Waiting& other) const {
      return order != other.order ? order > other.order
                                  : arrival > other.arrival;
    }
  };
  void make_threads() LEAT_REQUIRES(mutex_);
  void run(std::size_t thread, const std::stop_token& stop);

  const std::string name_;
  const std::size_t most_;
  const SteadyClock clock_;
  Metrics* const metrics_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::priority_queue<Waiting> waiting_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t arrivals_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t active_ LEAT_GUARDED_BY(mutex_);
  bool has_complained_ LEAT_GUARDED_BY(mutex_) = false;
  std::size_t running_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t tasks_ LEAT_GUARDED_BY(mutex_) = 0;
  Nanoseconds busy_ LEAT_GUARDED_BY(mutex_){0};
  std::vector<std::jthread> threads_
      LEAT_GUARDED_BY(mutex_);  // Last: joined before the rest dies.
};

}  // namespace leat
