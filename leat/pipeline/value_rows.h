// The values of one field of a batch, row by row, until they are joined.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/pipeline/batch.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/slot_pool.h"
#include "leat/pipeline/value.h"

namespace leat {

/// Threads: put() and bytes() any, each for a row of its own; the rest one,
///          after all of them.
class ValueRows {
 public:
  explicit ValueRows(std::size_t rows) : rows_(rows), taken_from_(rows) {
    for (std::size_t row = 0; row < rows; ++row) taken_from_[row] = row;
  }

  void put(std::size_t row, Value value) { rows_[row] = std::move(value); }
  /// As they stand in the batch. REQUIRES: put(row) was called.
  std::span<const std::byte> bytes(std::size_t row) const;

  /// `row` gets the value of `other`.
  void substitute(std::size_t row, std::size_t other) {
    taken_from_[row] = other;
  }

  /// What a message calls a row: its key.
  using KeyOf = std::function<std::string(std::size_t row)>;

  /// Puts all values together into `into`. The first batch of a loader decides
  /// about the type, in `learned` under `field`; the first row about the rest.
  ///
  /// REQUIRES: every row has a value.
  /// Errors:
  ///   kInvalidArgument  two values do not fit together; names both keys
  Result<void> join(const ValueProgram& program, const KeyOf& key_of,
                    SlotPool& slots, LearnedShapes& learned, std::size_t field,
                    FieldArray& into);

 private:
  const Value& value(std::size_t row) const { return *rows_[taken_from_[row]]; }
  const ArrayValue& array(std::size_t row) const {
    return std::get<ArrayValue>(value(row));
  }
  std::size_t deciding_row(Joining joining) const;
  Result<void> check_rows(const ValueProgram& program, const KeyOf& key_of,
                          std::size_t first) const;
  void stack(SlotPool& slots, FieldArray& into) const;
  void join_ragged(const TensorSpec& first, SlotPool& slots,
                   FieldArray& into) const;

  std::vector<std::optional<Value>> rows_;
  std::vector<std::size_t> taken_from_;
};

}  // namespace leat
