// The memory that a planner holds and cannot free by waiting.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stop_token>
#include <string_view>

#include "leat/base/result.h"
#include "leat/runtime/memory_budget.h"

namespace leat {

/// Reserves in plan order, and refuses a reservation that would wait for
/// itself: held bytes are freed only when the planner continues; all others are
/// freed without it.
///
/// Threads: the planner's.
class PlanMemory {
 public:
  explicit PlanMemory(MemoryBudget& budget) : budget_(budget) {}

  /// Waits until there is room. `what` names the bytes in the error, "the slots
  /// of …"; `remedy` follows "lower the batch size" there.
  ///
  /// Errors:
  ///   kResourceExhausted  it can never fit beside what is held
  ///   kCancelled          `stop` fired first
  Result<Reservation> reserve(std::uint64_t bytes, std::string_view what,
                              std::string_view remedy,
                              const std::stop_token& stop);

  /// Whether reserve() would wait for room instead of refusing.
  bool can_fit(std::uint64_t bytes) const {
    return bytes + held_bytes_ <= budget_.capacity_bytes();
  }

  /// The most that fits besides the held bytes.
  std::uint64_t room_bytes() const {
    return budget_.capacity_bytes() -
           std::min(held_bytes_, budget_.capacity_bytes());
  }

  void hold(std::uint64_t bytes) { held_bytes_ += bytes; }
  void let_go(std::uint64_t bytes) { held_bytes_ -= bytes; }
  std::uint64_t held_bytes() const { return held_bytes_; }

 private:
  MemoryBudget& budget_;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace leat
