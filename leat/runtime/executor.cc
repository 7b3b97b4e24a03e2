#include "leat/runtime/executor.h"

#include <utility>

#include "leat/base/check.h"
#include "leat/runtime/thread_name.h"

namespace leat {

Executor::Executor(std::string name, std::size_t threads, Metrics* metrics)
    : name_(std::move(name)), metrics_(metrics) {
  LEAT_CHECK(threads > 0);
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) {
      name_this_thread(name_ + "-" + std::to_string(i));
      run(i, stop);
    });
  }
}

Executor::~Executor() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  if (metrics_ != nullptr) {
    const MutexLock lock(mutex_);
    metrics_->add(Metric::kRuntimeExecutorTasks,
                  -static_cast<std::int64_t>(waiting_.size()));
  }
}

void Executor::submit(std::uint64_t order, Task task) {
  if (metrics_ != nullptr) metrics_->add(Metric::kRuntimeExecutorTasks, 1);
  {
    const MutexLock lock(mutex_);
    waiting_.push({order, arrivals_++, std::move(task)});
  }
  changed_.notify_one();
}

void Executor::run(std::size_t thread, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
      return !waiting_.empty();
    });
    if (stop.stop_requested()) return;
    // top() is const; the element is popped at once, so moving is safe.
    Task task = std::move(const_cast<Waiting&>(waiting_.top()).task);
    waiting_.pop();
    lock.unlock();
    task(thread);
    task = nullptr;  // What it holds goes before the lock is taken again.
    if (metrics_ != nullptr) metrics_->add(Metric::kRuntimeExecutorTasks, -1);
    lock.lock();
  }
}

}  // namespace leat
