// Blocking work that Ctrl-C can end.
#pragma once
#include <pybind11/pybind11.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "errors.h"
#include "gil.h"
#include "leat/runtime/start_thread.h"
#include "log.h"

namespace leat {

/// Runs the handlers of signals that have come, and throws what they raise.
/// Comes before deliver_log(), whose Python code would run them, too. REQUIRES:
/// the GIL is held.
inline void hear_signals() {
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

/// Runs `work(stop)` on a thread of its own while this one listens for signals,
/// and gives back its value. REQUIRES: the GIL is held; it is let go meanwhile.
template <class Work>
auto run_interruptibly(const Work& work) {
  std::stop_source stop;
  std::optional<decltype(work(stop.get_token()))> result;
  std::exception_ptr thrown;
  std::atomic<bool> is_done = false;
  {
    const GilReleased unlocked;
    const std::jthread worker = start_thread([&] {
      try {
        result.emplace(work(stop.get_token()));
      } catch (const std::exception&) {  // No memory, or no threads.
        thrown = std::current_exception();
      }
      is_done = true;
    });
    // A short read is not to wait for the first slice.
    for (auto slice = std::chrono::microseconds(20); !is_done;
         slice = std::min<std::chrono::microseconds>(
             2 * slice, std::chrono::milliseconds(5))) {
      std::this_thread::sleep_for(slice);
      if (is_done) break;
      const GilHeld locked;
      try {
        hear_signals();
        deliver_log();
      } catch (const pybind11::error_already_set&) {
        stop.request_stop();  // The worker is joined.
        throw;
      }
    }
  }
  deliver_log();
  if (thrown) std::rethrow_exception(thrown);
  return value_or_raise(*std::move(result));
}

}  // namespace leat
