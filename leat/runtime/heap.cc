#include "leat/runtime/heap.h"

#include <malloc.h>

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)  // The first with mallinfo2.
#define LEAT_TRIMS
#endif
#endif

namespace leat {

bool HeapTrim::trim(TimePoint now) {
#ifdef LEAT_TRIMS
  const std::int64_t at = now.time_since_epoch().count();
  std::int64_t next = next_nanoseconds_.load(std::memory_order_relaxed);
  if (at < next ||
      !next_nanoseconds_.compare_exchange_strong(next, at + kBetween.count())) {
    return false;
  }
  if (::mallinfo2().fordblks < kLeastFreeBytes) return false;
  (void)::malloc_trim(0);
  return true;
#else
  (void)now;
  return false;
#endif
}

HeapTrim& HeapTrim::of_process() {
  static HeapTrim trim;
  return trim;
}

}  // namespace leat
