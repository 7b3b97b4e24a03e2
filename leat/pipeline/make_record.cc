// The part of BatchWork that makes records for a cache: after the bytes have
// come, before the ops run. An error here is no failure of the sample: its
// bytes are kept, and the whole chain runs on them.

#include <time.h>

#include <utility>

#include "leat/pipeline/batch_work.h"

namespace leat {
namespace {

/// The seconds of this thread on a core.
double core_seconds() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void BatchWork::make_record(SampleWork& sample, SampleWork::Fetched& fetched,
                            std::size_t thread) {
  RecordWork& work = *fetched.record_work;
  if (work.is_open && !finds_room(sample, fetched, work)) return;
  if (work.cut != nullptr && work.room_bytes == 0) return;  // It was found.
  if (work.cut != nullptr) {
    if (work.trial != nullptr) {
      work.trial->costs.whole_seconds = try_whole(sample, fetched, thread);
    }
    const double begin = core_seconds();
    const TimePoint began = SteadyClock().now();
    if (const auto record = made_record(fetched, work, thread)) {
      count_record(record->size(), SteadyClock().now() - began);
      context_.decoded->records().keep(work.id, *record, work.hint);
      if (work.trial != nullptr) {
        work.trial->costs.before_seconds = core_seconds() - begin;
        work.trial->epoch = epoch;
      }
      work.turn_of = nullptr;  // It ends when that is written.
      work.record = *record;
      sample.times.decoded = SteadyClock().now();
      return;
    }
  }
  RecordId bytes_id = work.id;
  bytes_id.made_by.reset();
  context_.decoded->records().keep(bytes_id, fetched.bytes, work.hint);
}

void BatchWork::count_record(std::size_t bytes, Nanoseconds took) {
  Metrics& metrics = context_.metrics;
  metrics.add(Metric::kPipelineRecords, 1);
  metrics.add(Metric::kPipelineRecordBytes, static_cast<std::int64_t>(bytes));
  metrics.add(Metric::kPipelineRecordNanoseconds, took.count());
}

/// For a sample that was planned before a form was chosen, whose bytes the
/// cache has been offered: true if it is to be decoded instead, and can be.
bool BatchWork::finds_room(const SampleWork& sample,
                           const SampleWork::Fetched& fetched,
                           RecordWork& work) const {
  if (!context_.decoded->keeps(context_.in_dataset(sample.id))) return false;
  const auto bytes = work.cut->record_bytes_for(fetched.bytes);
  if (!bytes || !*bytes) return false;
  std::optional<Reservation> room = context_.budget.try_reserve(**bytes);
  if (!room) return false;
  work.late_room = *std::move(room);
  work.room_bytes = **bytes;
  return true;
}

/// nullopt: this sample has none, or it is longer than the memory reserved for
/// it.
std::optional<std::span<const std::byte>> BatchWork::made_record(
    const SampleWork::Fetched& fetched, RecordWork& work, std::size_t thread) {
  const auto bytes = work.cut->record_bytes_for(fetched.bytes);
  if (!bytes || !*bytes) return std::nullopt;
  context_.decoded->learn_record(**bytes);
  if (**bytes > work.room_bytes) return std::nullopt;
  Buffer record(**bytes);
  RunNotes notes;
  const Result<bool> made = work.cut->make(
      fetched.bytes, *context_.scratch[thread], record.span(), notes);
  if (!made || !*made) return std::nullopt;
  work.made = std::move(record);
  return work.made.span();
}

/// Runs the whole chains of a column, into the slots, in which they will be run
/// again in two halves.
double BatchWork::try_whole(const SampleWork& sample,
                            const SampleWork::Fetched& fetched,
                            std::size_t thread) {
  const double begin = core_seconds();
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (!field.is_fetched() || field.column != fetched.column) continue;
    // A user's function runs once a delivery.
    if (field.source != FieldSource::kProgram) return 0;
    const Result<TensorSpec> spec = field.program->output_for(fetched.bytes);
    const std::span<std::byte> row = dense_row(f, sample.row);
    if (!spec || spec->size_bytes() != row.size()) return 0;
    RunNotes notes;
    if (!field.program->run(fetched.bytes, random_of(sample),
                            *context_.scratch[thread], row, notes)) {
      return 0;
    }
  }
  return core_seconds() - begin;
}

/// Counts what a field takes whose ops run behind the cut.
Result<void> BatchWork::fill_rest(SampleWork& sample, std::size_t field,
                                  std::size_t thread, FormTrial& trial) {
  const double begin = core_seconds();
  Result<void> filled = fill_field(sample, field, thread);
  trial.costs.rest_seconds += core_seconds() - begin;
  return filled;
}

void BatchWork::end_trial(RecordWork& work) {
  if (work.record.empty()) return work.trial->end_without_record();
  FormCosts& costs = work.trial->costs;
  costs.encoded_bytes = static_cast<double>(work.id.length_bytes);
  costs.decoded_bytes = static_cast<double>(work.record.size());
  // For functions the cost of the whole is unknown: take that of both halves.
  if (costs.whole_seconds == 0) {
    costs.whole_seconds = costs.before_seconds + costs.rest_seconds;
  }
  work.trial->end_with_record();
}

}  // namespace leat
