// Waits for an answer that comes on another thread.
#pragma once
#include <optional>
#include <utility>

#include "leat/base/mutex.h"

namespace leat {

/// Holds one value from put() until take().
///
/// Turns a call that answers later into one that blocks.
///
/// Threads:  one puts, one takes.
/// Lifetime: may be destroyed as soon as take() has returned.
template <class T>
class ReplyBox {
 public:
  /// REQUIRES: called once.
  void put(T value) {
    const MutexLock lock(mutex_);
    value_.emplace(std::move(value));
    // Under the lock: after take() the box may be gone.
    arrived_.notify_one();
  }

  /// Waits for put(). The side that was asked handles stops: it answers
  /// kCancelled.
  T take() {
    MutexLock lock(mutex_);
    while (!value_.has_value()) arrived_.wait(lock);
    return *std::move(value_);
  }

 private:
  Mutex mutex_;
  std::condition_variable_any arrived_;
  std::optional<T> value_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
