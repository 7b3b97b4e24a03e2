// Starts threads where there may be none left.
#pragma once
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

namespace leat {

/// "the system starts no more threads …", with the remedy.
const char* no_threads_text();

/// How long start_thread() has waited for other threads to end.
class ThreadPatience {
 public:
  explicit ThreadPatience(
      std::chrono::milliseconds wait = std::chrono::milliseconds(100))
      : wait_(wait) {}

  /// Waits a little. After some seconds, throws `error` again, with
  /// no_threads_text(). So does any error but EAGAIN.
  void failed(const std::system_error& error);

 private:
  const std::chrono::milliseconds wait_;
  int waits_ = 0;
};

/// Starts a thread that calls `run`. If a limit of processes (pids.max,
/// `ulimit -u`) is reached, waits for threads to end, for some seconds. Blocks
/// as long.
///
/// Throws std::system_error, as std::jthread does: on a thread of the user's,
/// the binding and the command make an error of it.
template <class Run>
std::jthread start_thread(const Run& run) {
  for (ThreadPatience patience;;) {
    try {
      return std::jthread(run);
    } catch (const std::system_error& error) {
      patience.failed(error);
    }
  }
}

/// Adds a thread to a pool, which does without if none can be started: then
/// false. Does not wait.
template <class Run>
bool try_start_thread(std::vector<std::jthread>& pool, const Run& run) {
  try {
    pool.emplace_back(run);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace leat
