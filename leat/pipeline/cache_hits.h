// How many reads of an epoch caches answered, and where.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "leat/store/store.h"

namespace leat {

/// Threads: any. A reader of a count sees the work that was done before it was
///           counted.
class CacheHits {
 public:
  void count(CacheLevel level, std::uint64_t bytes) {
    at(level).fetch_add(1, std::memory_order_release);
    bytes_.fetch_add(bytes, std::memory_order_release);
  }
  /// A decoded record was found: no read was sent for it.
  void count_decoded(CacheLevel level) {
    decoded_[static_cast<std::size_t>(level)].fetch_add(
        1, std::memory_order_release);
  }
  std::uint64_t of(CacheLevel level) const {
    return at(level).load(std::memory_order_acquire);
  }
  std::uint64_t decoded_of(CacheLevel level) const {
    return decoded_[static_cast<std::size_t>(level)].load(
        std::memory_order_acquire);
  }
  /// The number of sent reads that a cache answered.
  std::uint64_t total() const {
    return of(CacheLevel::kRam) + of(CacheLevel::kDisk) + of(CacheLevel::kPeer);
  }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_acquire); }

 private:
  using Count = std::atomic<std::uint64_t>;
  Count& at(CacheLevel level) {
    return reads_[static_cast<std::size_t>(level)];
  }
  const Count& at(CacheLevel level) const {
    return reads_[static_cast<std::size_t>(level)];
  }

  std::array<Count, 3> reads_{};
  std::array<Count, 3> decoded_{};
  Count bytes_ = 0;
};

}  // namespace leat
