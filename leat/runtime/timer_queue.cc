#include "leat/runtime/timer_queue.h"

#include <utility>

#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {

TimerQueue::TimerQueue(std::string thread_name)
    : thread_(start_thread(
          [this, name = std::move(thread_name)](const std::stop_token& stop) {
            name_this_thread(name);
            run(stop);
          })) {}

TimerQueue::~TimerQueue() = default;

TimerQueue::Id TimerQueue::at(TimePoint due, std::function<void()> function) {
  Id id = 0;
  {
    const MutexLock lock(mutex_);
    id = next_id_++;
    waiting_.emplace(std::pair(due, id), std::move(function));
    due_of_.emplace(id, due);
  }
  changed_.notify_one();
  return id;
}

TimerQueue::Id TimerQueue::after(Nanoseconds delay,
                                 std::function<void()> function) {
  return at(SteadyClock().now() + delay, std::move(function));
}

bool TimerQueue::cancel(Id id) {
  const MutexLock lock(mutex_);
  const auto found = due_of_.find(id);
  if (found == due_of_.end()) return false;
  waiting_.erase({found->second, id});
  due_of_.erase(found);
  return true;
}

void TimerQueue::run(const std::stop_token& stop) {
  const SteadyClock clock;
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    if (waiting_.empty()) {
      changed_.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return !waiting_.empty();
      });
      continue;
    }
    const auto first = waiting_.begin();
    const TimePoint due = first->first.first;
    if (clock.now() < due) {
      changed_.wait_until(
          lock, stop, due, [this, due]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
            return waiting_.empty() || waiting_.begin()->first.first < due;
          });
      continue;
    }
    auto function = std::move(first->second);
    due_of_.erase(first->first.second);
    waiting_.erase(first);
    lock.unlock();
    function();
    lock.lock();
  }
}

}  // namespace leat
