// The bytes that the samples of a field needed so far.
#pragma once
#include <atomic>
#include <cstdint>

namespace leat {

/// Shared by both halves of a chain that is cut.
///
/// Threads: any.
class SeenSizes {
 public:
  void add(std::uint64_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    samples_.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t most = most_.load(std::memory_order_relaxed);
    while (bytes > most && !most_.compare_exchange_weak(
                               most, bytes, std::memory_order_relaxed)) {
    }
  }

  /// Half as much again as they needed on average; 0 before the first.
  std::uint64_t usual_bytes() const {
    const std::uint64_t samples = samples_.load(std::memory_order_relaxed);
    const std::uint64_t bytes = bytes_.load(std::memory_order_relaxed);
    return samples == 0 ? 0 : bytes / samples * 3 / 2;
  }
  std::uint64_t most_bytes() const {
    return most_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> samples_ = 0;
  std::atomic<std::uint64_t> most_ = 0;
};

}  // namespace leat
