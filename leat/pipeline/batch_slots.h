// The memory of a batch and its contents, row by row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/pipeline/batch.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_work.h"
#include "leat/pipeline/value_room.h"
#include "leat/pipeline/value_rows.h"

namespace leat {

/// The arrays of a batch's fields: sized before its bytes arrive, filled row by
/// row, and joined when all rows are done.
///
/// Threads: any for different rows; the other calls one at a time. Lifetime:
/// the context, the samples and `batch` must outlive it.
class BatchSlots {
 public:
  using Samples = std::vector<std::unique_ptr<SampleWork>>;
  struct Bytes {
    std::uint64_t certain = 0;
    std::uint64_t guessed = 0;  ///< For values of unknown size.
    std::uint64_t total() const { return certain + guessed; }
  };

  BatchSlots(const RunContext& context, const Samples& samples, Batch& batch);

  /// The bytes that its slots need; guesses take at most half of what
  /// `most_bytes` leave. REQUIRES: the shapes of dense fields are known.
  Bytes bytes_needed(std::uint64_t most_bytes) const;
  /// Takes the slots. REQUIRES: as above; `reservation` covers all of `bytes`.
  void take(Reservation reservation, const Bytes& bytes);
  /// From now on the bytes belong to the user.
  void hand_over();

  /// Whether there is memory for the output of the row's ops, if only its bytes
  /// determine the size. If there can never be, the sample fails. Called once,
  /// before the row is filled.
  bool finds_room_for_values(SampleWork& sample);

  /// The place of a row of a dense field.
  std::span<std::byte> dense_row(std::size_t field, std::size_t row);
  /// The place for the raw bytes of a row: the network may write them there.
  std::span<std::byte> raw_span(std::size_t field, std::size_t row);
  /// The raw bytes of a row whose sample is not the planned one, and may have
  /// more or fewer of them.
  void put_raw(std::size_t field, std::size_t row,
               std::span<const std::byte> bytes);
  void put_value(std::size_t field, std::size_t row, Value value);

  /// Joins the values of all rows into arrays. Errors: as ValueRows::join()
  Result<void> join_values();
  /// A hash of the values of a row, in epoch `batch.epoch`.
  Hash128 hash_of(std::size_t row);

 private:
  std::size_t size() const { return samples_.size(); }
  std::uint64_t length_of(const DeliveredField& field, SampleId id) const;
  std::uint64_t values_bytes(std::size_t field) const;
  std::uint64_t guessed_bytes() const;
  std::uint64_t certain_bytes() const;
  TensorSpec spec_of(std::size_t field) const;
  FieldArray empty_array(std::size_t field);
  FieldArray raw_array(std::size_t column);
  JoinRule join_rule(std::size_t field) const;
  std::span<const std::byte> row_bytes(std::size_t field, std::size_t row);
  void join_raw(std::size_t field);

  const RunContext& context_;
  const Samples& samples_;
  Batch& batch_;
  std::vector<ValueRows> values_;  // One a field; rows only of kValue.
  // One a field, and there a row: set by put_raw() alone.
  std::vector<std::vector<std::optional<Buffer>>> other_raw_;
  ValueRoom room_;  // For the values of programs that guess.
  Reservation reservation_;
};

}  // namespace leat
