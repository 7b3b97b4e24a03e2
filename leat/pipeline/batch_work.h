// A batch on its way: its slots, its samples and their states.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/pipeline/batch.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_work.h"
#include "leat/pipeline/value_room.h"
#include "leat/pipeline/value_rows.h"

namespace leat {

/// The rows of one rank in one step.
///
/// Lifetime: shared by the planner, every read in flight and the consumer.
class BatchWork {
 public:
  BatchWork(const RunContext& context, std::uint64_t epoch, std::uint64_t step,
            std::vector<SampleId> ids);

  std::size_t size() const { return samples_.size(); }
  SampleWork& sample(std::size_t row) { return *samples_[row]; }
  const SampleTimes& times_of(std::size_t row) const {
    return samples_[row]->times;
  }
  /// The times of the row that finished last. REQUIRES: is_ready.
  const SampleTimes& last_times() const { return samples_[last_row]->times; }

  /// From the plan of a row to its slot, for the row that took longest.
  /// REQUIRES: is_ready.
  Nanoseconds longest_fetch() const;

  /// Whether its shapes are known.
  bool has_shapes() const;
  struct SlotBytes {
    std::uint64_t certain = 0;
    std::uint64_t guessed = 0;  ///< For values whose size only they tell.
    std::uint64_t total() const { return certain + guessed; }
  };
  /// The bytes that its slots need; guesses take at most half of the rest of
  /// `most_bytes`. REQUIRES: has_shapes().
  SlotBytes slot_bytes(std::uint64_t most_bytes) const;
  /// Takes the slots. REQUIRES: has_shapes(); `reservation` is of all of
  /// `bytes`.
  void take_slots(Reservation reservation, const SlotBytes& bytes);
  /// The place of a row's raw bytes, so that the network may write them there.
  std::span<std::byte> raw_span(std::size_t field, std::size_t row);

  /// True if there is memory for the output of the row's ops, whose size only
  /// its bytes tell. If that can never be, the sample has failed. Called once,
  /// before fill().
  bool finds_room_for_values(SampleWork& sample);

  /// Runs the row's ops and copies its numbers; on an executor thread.
  /// REQUIRES: times.decoded says when that began.
  Result<void> fill(SampleWork& sample, std::size_t thread);

  struct RowEnd {
    bool is_last;
    TimePoint at;  ///< The clock, as it was read last.
  };
  /// Counts a row as done, well or not. The last one has then put the batch
  /// together and set `ready`.
  RowEnd finish(SampleWork& sample);

  /// The bytes are the user's from now on.
  void hand_over() {
    reservation_.release();
    room_.release();
  }

  const std::uint64_t epoch;
  const std::uint64_t step;
  std::uint64_t position_after = 0;
  /// Rows that wait until nothing is delivered before them; the run's.
  std::vector<SampleWork*> put_off;
  /// Positions that were passed over so far: see plan/ready_first.h.
  std::vector<std::uint64_t> left_behind;

  /// Set by the planner before it finishes the rows that it could not send.
  std::optional<Error> plan_error;

  // Set once, by the last finish(); read once `is_ready`.
  std::atomic<bool> is_ready = false;
  TimePoint ready;
  std::optional<Error> error;
  std::size_t last_row = 0;       ///< The row that finished last.
  std::uint64_t substituted = 0;  ///< Rows of bad samples, filled by others.
  std::string first_bad;          ///< The first of these, and why.
  Batch batch;

 private:
  FieldArray empty_array(std::size_t field);
  FieldArray raw_array(std::size_t column);
  TensorSpec spec_of(std::size_t field) const;
  std::uint64_t certain_bytes() const;
  std::uint64_t guessed_bytes() const;
  std::uint64_t values_bytes(std::size_t field) const;
  JoinRule join_rule(std::size_t field) const;
  std::uint64_t length_of(const DeliveredField& field, SampleId id) const;
  void make_record(SampleWork& sample, SampleWork::Fetched& fetched,
                   std::size_t thread);
  void count_record(std::size_t bytes, Nanoseconds took);
  bool finds_room(const SampleWork& sample, const SampleWork::Fetched& fetched,
                  RecordWork& work) const;
  std::optional<std::span<const std::byte>> made_record(
      const SampleWork::Fetched& fetched, RecordWork& work, std::size_t thread);
  double try_whole(const SampleWork& sample, const SampleWork::Fetched& fetched,
                   std::size_t thread);
  Result<void> fill_rest(SampleWork& sample, std::size_t field,
                         std::size_t thread, FormTrial& trial);
  void end_trial(RecordWork& work);
  Result<void> fill_field(SampleWork& sample, std::size_t field,
                          std::size_t thread);
  Result<void> fill_program(SampleWork& sample, std::size_t field,
                            std::size_t thread);
  Result<void> fill_value(SampleWork& sample, std::size_t field,
                          std::size_t thread);
  Result<void> check_shape(std::size_t field, const TensorSpec& found) const;
  SampleRandom random_of(const SampleWork& sample) const;
  void note(SampleWork& sample, const RunNotes& notes);
  std::span<std::byte> dense_row(std::size_t field, std::size_t row);
  std::span<const std::byte> row_bytes(std::size_t field, std::size_t row);
  void put_together();
  Result<void> join_values();
  void substitute(std::size_t bad_row, std::size_t good_row);
  void substitute_ragged(FieldArray& array, std::size_t bad_row,
                         std::size_t good_row);
  Hash128 hash_of(std::size_t row);

  const RunContext& context_;
  std::vector<std::unique_ptr<SampleWork>> samples_;
  /// One for each field; it has rows only for kValue.
  std::vector<ValueRows> values_;
  ValueRoom room_;  ///< For the values of programs that guess.
  Reservation reservation_;
  std::atomic<std::size_t> left_;
};

}  // namespace leat
