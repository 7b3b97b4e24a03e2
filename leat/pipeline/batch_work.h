// A batch in preparation: its slots, its samples and their results.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/pipeline/batch.h"
#include "leat/pipeline/batch_slots.h"
#include "leat/pipeline/run_context.h"
#include "leat/pipeline/sample_work.h"

namespace leat {

/// The rows of one rank in one step.
///
/// Lifetime: shared by the planner, every read in flight and the consumer.
class BatchWork : public std::enable_shared_from_this<BatchWork> {
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

  /// The longest time of any row from its plan to its slot.
  /// REQUIRES: is_ready.
  Nanoseconds longest_fetch() const;

  /// Whether its shapes are known.
  bool has_shapes() const;
  BatchSlots& slots() { return slots_; }

  /// Runs the row's ops and copies its numbers; on an executor thread.
  /// Bytes that have not the catalogue's checksum are read again first, which
  /// blocks. REQUIRES: times.decoded has the time when that began.
  Result<void> fill(SampleWork& sample, std::size_t thread,
                    const std::stop_token& stop);

  /// Runs the row's ops and keeps nothing, before there are slots; on an
  /// executor thread. Errors: those of fill() that are about the sample;
  /// kResourceExhausted if it is large and there is no memory for it now.
  Result<void> try_row(SampleWork& sample, std::size_t thread,
                       const std::stop_token& stop);

  struct RowEnd {
    bool is_last;
    TimePoint at;  ///< The clock's last reading.
  };
  /// Counts a row as finished, successful or not. The last one has then
  /// completed the batch and set `ready`.
  RowEnd finish(SampleWork& sample);

  /// From now on the bytes belong to the user.
  void hand_over() { slots_.hand_over(); }

  const std::uint64_t epoch;
  const std::uint64_t step;
  std::uint64_t position_after = 0;
  /// Rows that wait until no batch is delivered before theirs.
  std::vector<SampleWork*> put_off;
  /// Positions that were skipped so far: see plan/ready_first.h.
  std::vector<std::uint64_t> left_behind;

  /// Set by the planner before it finishes the rows that it could not send.
  std::optional<Error> plan_error;

  /// Training has asked for it and waits.
  std::atomic<bool> is_awaited = false;

  /// Another sample takes the row.
  void begin_again(SampleWork& sample, SampleId next);

  // Set once, by the last finish(); read once `is_ready`.
  std::atomic<bool> is_ready = false;
  TimePoint ready;
  std::optional<Error> error;
  std::size_t last_row = 0;  ///< The row that finished last.
  // Rows in which another sample took the place of one that was passed over.
  std::uint64_t substituted = 0;  ///< It was bad.
  std::uint64_t skipped = 0;      ///< A function of the user's skipped it.
  Batch batch;

 private:
  Result<void> prove(SampleWork& sample, const std::stop_token& stop);
  Result<void> check_there(const DeliveredField& field,
                           const SampleWork& sample) const;
  Result<void> fill_field(SampleWork& sample, std::size_t field,
                          std::size_t thread);
  Result<void> fill_program(SampleWork& sample, std::size_t field,
                            std::size_t thread);
  Result<void> fill_value(SampleWork& sample, std::size_t field,
                          std::size_t thread);
  Result<void> check_shape(std::size_t field, const TensorSpec& found) const;
  SampleRandom random_of(const SampleWork& sample) const;
  void note(SampleWork& sample, const RunNotes& notes);
  void put_together();
  Error error_of(const SampleWork& sample) const;

  const RunContext& context_;
  BatchSlots::Samples samples_;
  BatchSlots slots_;  ///< They fill `batch` from `samples_`.
  std::atomic<std::size_t> left_;
};

}  // namespace leat
