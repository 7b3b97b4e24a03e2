// The memory of values whose sizes only their bytes determine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/pipeline/program/tensor.h"
#include "leat/pipeline/program/value.h"
#include "leat/runtime/memory_budget.h"

namespace leat {

/// The memory that the values of one batch need, row by row, and the memory
/// available for them: at first a guess, before anything was fetched.
///
/// More is taken from the budget if it is free at once. Nobody waits for it: a
/// row that would have to wait is put off until its batch is the next to be
/// delivered, which goes on without. So all batches on the way need no more
/// than the budget, and the part by which the next one was guessed too low.
///
/// Threads: find() any; the rest before it.
class ValueRoom {
 public:
  void begin(std::size_t fields, std::size_t rows, std::uint64_t guessed_bytes);

  enum class Found : std::uint8_t {
    kYes,
    kNotNow,
    kTooMuch,  ///< More than the whole budget.
  };
  /// Counts a row's value, of `spec`, which is then joined with the others.
  Found find(std::size_t field, const TensorSpec& spec, Joining joining,
             const PadRule& pad_rule, MemoryBudget& budget);

  std::uint64_t needed_bytes() const;
  /// Returns what was taken beyond the guess.
  void release();

 private:
  struct FieldNeeds {
    std::uint64_t values_bytes = 0;
    std::uint64_t joined_bytes = 0;
    std::int64_t height = 0;  ///< The most of any row.
    std::int64_t width = 0;   ///< The most of any row.
  };
  void count(FieldNeeds& needs, const TensorSpec& spec, Joining joining,
             const PadRule& pad_rule) const;
  std::uint64_t sum() const LEAT_REQUIRES(mutex_);

  std::size_t rows_ = 0;
  mutable Mutex mutex_;
  std::vector<FieldNeeds> fields_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t room_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<Reservation> more_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
