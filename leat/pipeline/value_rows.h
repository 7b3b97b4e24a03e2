// The values of one field of a batch, row by row, until they are joined.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/pipeline/batch.h"
#include "leat/pipeline/program/value.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/slot_pool.h"

namespace leat {

/// How the values of a field are joined.
struct JoinRule {
  Joining joining = Joining::kStack;
  PadRule pad = {};  ///< For kPadded.
  /// The remedy if two values do not fit together.
  std::string remedy = {};
};

/// The length to which `most`, of heights (0) or widths (1), is padded.
std::int64_t padded_side(std::int64_t most, const PadRule& rule,
                         std::size_t axis);

/// Threads: put(), bytes() and shape() any, for different rows; the rest
/// one,
///          after all of them.
class ValueRows {
 public:
  explicit ValueRows(std::size_t rows) : rows_(rows) {}

  void put(std::size_t row, Value value) { rows_[row] = std::move(value); }
  /// The bytes as they are in the batch. REQUIRES: put(row) was called.
  std::span<const std::byte> bytes(std::size_t row) const;
  /// Its shape; that of a text is empty. REQUIRES: put(row) was called.
  std::span<const std::int64_t> shape(std::size_t row) const;
  /// The height and width of each picture, as rows of `into`: int64, (rows, 2).
  /// REQUIRES: every row has a value.
  /// Errors: kInvalidArgument: it is not a picture; names its key
  Result<void> write_sizes(
      std::size_t height_at,
      const std::function<std::string(std::size_t)>& key_of,
      std::span<std::byte> into) const;

  /// The name of a row in a message: its key.
  using KeyOf = std::function<std::string(std::size_t row)>;

  /// Joins all values into `into`. The first batch of a loader determines the
  /// type, in `learned` under `field`; the first row determines the rest.
  ///
  /// REQUIRES: every row has a value.
  /// Errors:
  ///   kInvalidArgument  two values do not fit together; names both keys
  Result<void> join(const JoinRule& rule, const KeyOf& key_of, SlotPool& slots,
                    LearnedShapes& learned, std::size_t field,
                    FieldArray& into);

 private:
  const Value& value(std::size_t row) const { return *rows_[row]; }
  const ArrayValue& array(std::size_t row) const {
    return std::get<ArrayValue>(value(row));
  }
  std::size_t deciding_row(Joining joining) const;
  bool are_equal() const;
  Result<void> check_rows(const JoinRule& rule, Joining joining,
                          const KeyOf& key_of, std::size_t first) const;
  void stack(SlotPool& slots, FieldArray& into) const;
  void join_ragged(const TensorSpec& first, SlotPool& slots,
                   FieldArray& into) const;
  void join_shapes(SlotPool& slots, FieldArray& into) const;
  Result<TensorSpec> padded_spec(const PadRule& rule,
                                 const KeyOf& key_of) const;
  Result<void> pad(const PadRule& rule, const KeyOf& key_of, SlotPool& slots,
                   FieldArray& into) const;
  void copy_all(std::span<std::byte> into) const;

  std::vector<std::optional<Value>> rows_;
};

}  // namespace leat
