// Threads that run tasks in the order of the plan.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/metrics/metrics.h"

namespace leat {

/// Runs tasks on a fixed number of threads; of those that wait, the one that
/// the plan wants first goes first.
///
/// Not bounded itself: whoever submits holds a bounded resource (a reservation
/// of memory) for every task.
///
/// Threads:  any.
/// Lifetime: destruction lets running tasks end, drops the waiting ones and
///           joins. A dropped task is destroyed, which frees what it holds.
class Executor {
 public:
  /// Told which of the threads runs it, in [0, threads).
  using Task = std::function<void(std::size_t thread)>;

  /// REQUIRES: threads > 0. `metrics` may be null, else outlives the executor.
  Executor(std::string name, std::size_t threads, Metrics* metrics = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Queues `task`; smaller `order` runs sooner, equal ones as they came.
  void submit(std::uint64_t order, Task task);

  std::size_t threads() const { return threads_.size(); }

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
  void run(std::size_t thread, const std::stop_token& stop);

  const std::string name_;
  Metrics* const metrics_;

  Mutex mutex_;
  CondVar changed_;
  std::priority_queue<Waiting> waiting_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t arrivals_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_;  // Last: joined before the rest dies.
};

}  // namespace leat
