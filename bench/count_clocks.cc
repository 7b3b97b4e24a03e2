// Counts a program's calls of the clock: LD_PRELOAD=libcount_clocks.so. At its
// end it writes how many there were, and the nanoseconds that one takes here,
// into the file that COUNT_CLOCKS names.

#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>

namespace {

using ReadClock = int(clockid_t, timespec*);

std::atomic<std::uint64_t> calls = 0;

ReadClock* clock_of_the_library() {
  static auto* const found =
      reinterpret_cast<ReadClock*>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return found;
}

double cpu_nanoseconds() {
  timespec time{};
  clock_of_the_library()(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec);
}

double nanoseconds_a_call() {
  constexpr int kCalls = 2'000'000;
  timespec time{};
  const double begin = cpu_nanoseconds();
  for (int i = 0; i < kCalls; ++i) {
    clock_of_the_library()(CLOCK_MONOTONIC, &time);
  }
  return (cpu_nanoseconds() - begin) / kCalls;
}

struct Report {
  ~Report() {
    const char* const path = std::getenv("COUNT_CLOCKS");
    if (path == nullptr) return;
    const std::uint64_t counted = calls.load();
    std::ofstream(path) << counted << ' ' << nanoseconds_a_call() << '\n';
  }
};
const Report kReport;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return clock_of_the_library()(clock, time);
}
