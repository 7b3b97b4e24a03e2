// A bounded, closable, stoppable queue that times its waits.
#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// How long each side has waited for the other: a starved consumer points
/// upstream, a blocked producer downstream.
struct QueueWaits {
  Nanoseconds push{0};  ///< Producers waiting for room.
  Nanoseconds pop{0};   ///< Consumers waiting for items.
};

/// A first-in, first-out queue that holds at most `capacity` items.
///
/// Its end is part of the contract. After close(), pushes are refused and pops
/// drain the rest, then return nullopt. A stop token that fires ends any wait
/// immediately; items that the queue has accepted stay in it.
///
/// Threads: any number of producers and consumers.
template <class T>
class BoundedQueue {
 public:
  /// REQUIRES: capacity > 0.
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {
    LEAT_CHECK(capacity > 0);
  }

  /// Waits for room. False, dropping `item`, if closed or stopped before then.
  bool push(T item, const std::stop_token& stop) {
    MutexLock lock(mutex_);
    timed_wait(lock, stop, waits_.push,
               [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
                 return is_closed_ || items_.size() < capacity_;
               });
    if (is_closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  /// Waits for an item. Nullopt if stopped, or closed and drained.
  std::optional<T> pop(const std::stop_token& stop) {
    MutexLock lock(mutex_);
    timed_wait(lock, stop, waits_.pop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
      return is_closed_ || !items_.empty();
    });
    if (items_.empty() || stop.stop_requested()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  /// Refuses further pushes. May be called more than once.
  void close() {
    const MutexLock lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

  std::size_t size() const {
    const MutexLock lock(mutex_);
    return items_.size();
  }

  QueueWaits waits() const {
    const MutexLock lock(mutex_);
    return waits_;
  }

 private:
  template <class Ready>
  void timed_wait(MutexLock& lock, const std::stop_token& stop,
                  Nanoseconds& total, Ready ready) LEAT_REQUIRES(mutex_) {
    if (ready()) return;
    const TimePoint begin = SteadyClock().now();
    changed_.wait(lock, stop, ready);
    total += SteadyClock().now() - begin;
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<T> items_ LEAT_GUARDED_BY(mutex_);
  QueueWaits waits_ LEAT_GUARDED_BY(mutex_);
  bool is_closed_ LEAT_GUARDED_BY(mutex_) = false;
};

}  // namespace leat
