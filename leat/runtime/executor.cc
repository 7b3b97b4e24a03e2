#include "leat/runtime/executor.h"

#include <fmt/format.h>
#include <pthread.h>

#include <ctime>

#include <algorithm>
#include <utility>

#include "leat/base/check.h"
#include "leat/runtime/log.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {

namespace {
thread_local const Executor* executor_here = nullptr;
}  // namespace

const Executor* Executor::here() { return executor_here; }

Executor::Executor(std::string name, std::size_t threads, Metrics* metrics,
                   std::size_t most)
    : name_(std::move(name)),
      most_(std::max(threads, most)),
      metrics_(metrics),
      active_(threads) {
  LEAT_CHECK(threads > 0);
  const MutexLock lock(mutex_);
  make_threads();
}

void Executor::make_threads() {
  while (threads_.size() < active_) {
    const std::size_t i = threads_.size();
    const auto work = [this, i](const std::stop_token& stop) {
      name_this_thread(name_ + "-" + std::to_string(i));
      run(i, stop);
    };
    if (try_start_thread(threads_, work)) continue;
    if (i == 0) {
      threads_.push_back(start_thread(work));
      continue;
    }
    // The next set_active() tries again.
    if (!std::exchange(has_complained_, true)) {
      log_warning(fmt::format("{} threads of {} work: {}", i, active_,
                              no_threads_text()));
    }
    return;
  }
}

Executor::~Executor() {
  std::vector<std::jthread> threads;
  {
    const MutexLock lock(mutex_);
    threads = std::move(threads_);
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  if (metrics_ != nullptr) {
    const MutexLock lock(mutex_);
    metrics_->add(Metric::kRuntimeExecutorTasks,
                  -static_cast<std::int64_t>(waiting_.size()));
  }
}

void Executor::submit(std::uint64_t order, Task task) {
  if (metrics_ != nullptr) metrics_->add(Metric::kRuntimeExecutorTasks, 1);
  bool may_work = false;
  {
    const MutexLock lock(mutex_);
    waiting_.push({order, arrivals_++, std::move(task)});
    may_work = running_ < active_;
  }
  if (may_work) changed_.notify_one();
}

void Executor::set_active(std::size_t threads) {
  LEAT_CHECK(threads >= 1 && threads <= most_);
  {
    const MutexLock lock(mutex_);
    active_ = threads;
    make_threads();
  }
  changed_.notify_all();
}

std::size_t Executor::active() const {
  const MutexLock lock(mutex_);
  return active_;
}

Executor::Work Executor::work() const {
  const MutexLock lock(mutex_);
  Work work{.tasks = tasks_, .busy = busy_};
  for (const std::jthread& thread : threads_) {
    clockid_t clock = 0;
    timespec time{};
    // native_handle() is not const, though asking changes nothing.
    const pthread_t handle = const_cast<std::jthread&>(thread).native_handle();
    if (pthread_getcpuclockid(handle, &clock) != 0) continue;
    if (clock_gettime(clock, &time) != 0) continue;
    work.cpu += std::chrono::seconds(time.tv_sec) +
                std::chrono::nanoseconds(time.tv_nsec);
  }
  return work;
}

void Executor::run(std::size_t thread, const std::stop_token& stop) {
  executor_here = this;
  MutexLock lock(mutex_);
  TimePoint ended{};       // The task before.
  bool has_waited = true;  // Since then.
  while (true) {
    has_waited |= waiting_.empty() || running_ >= active_;
    changed_.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
      return !waiting_.empty() && running_ < active_;
    });
    if (stop.stop_requested()) return;
    // top() is const; the element is popped at once, so moving is safe.
    Task task = std::move(const_cast<Waiting&>(waiting_.top()).task);
    waiting_.pop();
    ++running_;
    lock.unlock();
    Turn turn{.thread = thread, .began = has_waited ? clock_.now() : ended};
    task(turn);
    task = nullptr;  // Destroy the task's captures before the lock is taken
                     // again.
    ended = turn.ended ? *turn.ended : clock_.now();
    has_waited = false;
    const Nanoseconds took = ended - turn.began;
    if (metrics_ != nullptr) metrics_->add(Metric::kRuntimeExecutorTasks, -1);
    lock.lock();
    --running_;  // The thread that ends a task takes the next one, so it need
                 // not wake another.
    ++tasks_;
    busy_ += took;
  }
}

}  // namespace leat
