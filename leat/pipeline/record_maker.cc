#include "leat/pipeline/record_maker.h"

#include <time.h>

#include <utility>

namespace leat {
namespace {

/// The time of this thread on a core.
double core_seconds() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void RecordMaker::make(SampleWork& sample, SampleWork::Fetched& fetched) {
  RecordWork& work = *fetched.record_work;
  if (work.is_open && !finds_room(sample, fetched, work)) return;
  if (work.cut != nullptr && work.room_bytes == 0) return;  // It was found.
  if (work.cut != nullptr) {
    if (work.trial != nullptr) {
      work.trial->costs.whole_seconds = try_whole(sample, fetched);
    }
    const double begin = core_seconds();
    const TimePoint began = SteadyClock().now();
    if (const auto record = made_record(fetched, work)) {
      count_record(record->size(), SteadyClock().now() - began);
      context_.decoded->records().keep(work.id, *record, work.hint);
      if (work.trial != nullptr) {
        work.trial->costs.before_seconds = core_seconds() - begin;
        work.trial->epoch = random_.epoch;
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

void RecordMaker::count_record(std::size_t bytes, Nanoseconds took) {
  Metrics& metrics = context_.metrics;
  metrics.add(Metric::kPipelineRecords, 1);
  metrics.add(Metric::kPipelineRecordBytes, static_cast<std::int64_t>(bytes));
  metrics.add(Metric::kPipelineRecordNanoseconds, took.count());
}

/// A sample may have been planned before a form was chosen, and the cache been
/// offered its bytes: says whether it is to be decoded instead, and can be.
bool RecordMaker::finds_room(const SampleWork& sample,
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

/// nullopt: there is none of this sample, or it is longer than what was
/// reserved for it.
std::optional<std::span<const std::byte>> RecordMaker::made_record(
    const SampleWork::Fetched& fetched, RecordWork& work) {
  const auto bytes = work.cut->record_bytes_for(fetched.bytes);
  if (!bytes || !*bytes) return std::nullopt;
  context_.decoded->learn_record(**bytes);
  if (**bytes > work.room_bytes) return std::nullopt;
  Buffer record(**bytes);
  RunNotes notes;
  const Result<bool> made = work.cut->make(
      fetched.bytes, *context_.scratch[thread_], record.span(), notes);
  if (!made || !*made) return std::nullopt;
  work.made = std::move(record);
  return work.made.span();
}

/// Runs the whole chains of a column, into the slots, where they will be run
/// again in two halves.
double RecordMaker::try_whole(const SampleWork& sample,
                              const SampleWork::Fetched& fetched) {
  const double begin = core_seconds();
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (!field.is_fetched() || field.column != fetched.column) continue;
    // A user's function runs once a delivery.
    if (field.source != FieldSource::kProgram) return 0;
    const Result<TensorSpec> spec = field.program->output_for(fetched.bytes);
    const std::span<std::byte> row = slots_.dense_row(f, sample.row);
    if (!spec || spec->size_bytes() != row.size()) return 0;
    RunNotes notes;
    if (!field.program->run(fetched.bytes, random_, *context_.scratch[thread_],
                            row, notes)) {
      return 0;
    }
  }
  return core_seconds() - begin;
}

void RecordMaker::end_trial(RecordWork& work) {
  if (work.record.empty()) return work.trial->end_without_record();
  FormCosts& costs = work.trial->costs;
  costs.encoded_bytes = static_cast<double>(work.id.length_bytes);
  costs.decoded_bytes = static_cast<double>(work.record.size());
  // The whole of a function is not known: it counts as much as both halves.
  if (costs.whole_seconds == 0) {
    costs.whole_seconds = costs.before_seconds + costs.rest_seconds;
  }
  work.trial->end_with_record();
}

RestTimer::RestTimer(FormTrial* trial)
    : trial_(trial), began_(trial == nullptr ? 0 : core_seconds()) {}

RestTimer::~RestTimer() {
  if (trial_ != nullptr) {
    trial_->costs.rest_seconds += core_seconds() - began_;
  }
}

}  // namespace leat
