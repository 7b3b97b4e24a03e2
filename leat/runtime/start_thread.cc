#include "leat/runtime/start_thread.h"

#include <cerrno>

namespace leat {
namespace {

constexpr int kMostWaits = 50;

}  // namespace

const char* no_threads_text() {
  return "the system starts no more threads for this process: raise the limit "
         "of processes (`ulimit -u`, or pids.max of the container), or give "
         "fewer threads=";
}

void ThreadPatience::failed(const std::system_error& error) {
  if (error.code().value() != EAGAIN) throw error;
  if (waits_++ == kMostWaits) {
    throw std::system_error(error.code(), no_threads_text());
  }
  std::this_thread::sleep_for(wait_);
}

}  // namespace leat
