// The memory that the C library keeps after it was freed.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "leat/base/clock.h"

namespace leat {

/// Returns free memory of the process's heap to the system, now and then.
///
/// glibc has heaps for up to eight threads a core. A sample's bytes are freed
/// into the heap of the thread that asked for them, and a heap returns only the
/// free memory at its end. Threads come and go with loaders, so that sooner or
/// later each heap is as large as one loader needs.
///
/// Threads: any.
class HeapTrim {
 public:
  struct Heap {
    std::function<std::size_t()> free_bytes;
    std::function<void()> give_back;
  };

  /// The least time between two trims. A trim walks all that is free, the
  /// program's memory too, and what it returned costs a page fault when
  /// it is used again.
  static constexpr Nanoseconds kBetween = std::chrono::seconds(30);
  /// With less free memory than this, a trim is not worth its cost.
  static constexpr std::size_t kLeastFreeBytes = 64UL << 20;

  /// Trims the C library's heap.
  HeapTrim();
  explicit HeapTrim(Heap heap);

  /// Returns free memory in whole pages to the system. Returns false if
  /// the last trim is too recent, if little is free, or if the C library
  /// has no such call.
  bool trim(TimePoint now);

  /// The trim of this process, whose heaps all loaders share.
  static HeapTrim& of_process();

 private:
  const Heap heap_;
  std::atomic<std::int64_t> next_nanoseconds_ = INT64_MIN;
};

}  // namespace leat
