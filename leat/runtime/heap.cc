#include "leat/runtime/heap.h"

#include <malloc.h>

#include <utility>

namespace leat {
namespace {

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)  // The first with mallinfo2.
#define LEAT_TRIMS
#endif
#endif

HeapTrim::Heap heap_of_the_library() {
#ifdef LEAT_TRIMS
  return {.free_bytes = [] { return ::mallinfo2().fordblks; },
          .give_back = [] { (void)::malloc_trim(0); }};
#else
  return {.free_bytes = [] { return std::size_t{0}; }, .give_back = [] {}};
#endif
}

}  // namespace

HeapTrim::HeapTrim() : HeapTrim(heap_of_the_library()) {}

HeapTrim::HeapTrim(Heap heap) : heap_(std::move(heap)) {}

bool HeapTrim::trim(TimePoint now) {
  const std::int64_t at = now.time_since_epoch().count();
  std::int64_t next = next_nanoseconds_.load(std::memory_order_relaxed);
  if (at < next ||
      !next_nanoseconds_.compare_exchange_strong(next, at + kBetween.count())) {
    return false;
  }
  if (heap_.free_bytes() < kLeastFreeBytes) return false;
  heap_.give_back();
  return true;
}

HeapTrim& HeapTrim::of_process() {
  static HeapTrim trim;
  return trim;
}

}  // namespace leat
