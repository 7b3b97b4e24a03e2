// Waits for a while, unless it is told to stop.
#pragma once
#include <stop_token>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"

namespace leat {

/// Blocks for `how_long`. Returns false, and immediately, if the
/// stop comes first.
inline bool pause_for(Nanoseconds how_long, const std::stop_token& stop) {
  Mutex mutex;
  CondVar stopped;
  MutexLock lock(mutex);
  stopped.wait_for(lock, stop, how_long, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace leat
