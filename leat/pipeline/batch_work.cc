#include "leat/pipeline/batch_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "leat/pipeline/within_memory.h"

namespace leat {

BatchWork::BatchWork(const RunContext& context, std::uint64_t epoch_number,
                     std::uint64_t step_number, std::vector<SampleId> ids)
    : epoch(epoch_number),
      step(step_number),
      context_(context),
      slots_(context, samples_, batch),
      left_(ids.size()) {
  samples_.reserve(ids.size());
  for (std::size_t row = 0; row < ids.size(); ++row) {
    auto sample = std::make_unique<SampleWork>();
    sample->batch = this;
    sample->row = row;
    sample->id = ids[row];
    sample->planned = ids[row];
    samples_.push_back(std::move(sample));
  }
  batch.epoch = epoch;
  batch.step = step;
  batch.ids = std::move(ids);
  for (SampleId& id : batch.ids) id = context_.in_dataset(id);
}

Nanoseconds BatchWork::longest_fetch() const {
  Nanoseconds longest{0};
  for (const auto& sample : samples_) {
    longest =
        std::max(longest, sample->times.finished - sample->times.reserved);
  }
  return longest;
}

bool BatchWork::has_shapes() const {
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source == FieldSource::kProgram && !field.program->output() &&
        !context_.shapes.find(f)) {
      return false;
    }
  }
  return true;
}

BatchWork::RowEnd BatchWork::finish(SampleWork& sample) {
  const TimePoint now = SteadyClock().now();
  sample.times.finished = now;
  // A sample that failed early has no later times.
  TimePoint at = sample.times.reserved;
  for (TimePoint* moment : {&sample.times.fetched, &sample.times.decoded}) {
    *moment = std::clamp(*moment, at, sample.times.finished);
    at = *moment;
  }
  sample.let_go();
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return {.is_last = false, .at = now};
  }
  last_row = sample.row;
  put_together();
  const TimePoint end = SteadyClock().now();
  ready = end;
  is_ready.store(true, std::memory_order_release);
  return {.is_last = true, .at = end};
}

void BatchWork::begin_again(SampleWork& sample, SampleId next) {
  sample.begin_again(next);
  batch.ids[sample.row] = context_.in_dataset(next);
}

Error BatchWork::error_of(const SampleWork& sample) const {
  const Error failed = *sample.error();
  const bool is_bad = exclusion_by(failed.code()) == Excluded::kBad;
  std::string_view remedy;
  if (is_bad && !context_.keeps_samples &&
      context_.on_error == OnError::kRaise) {
    remedy = " (on_error=\"substitute\" passes over such samples)";
  } else if (context_.keeps_samples && failed.code() == ErrorCode::kSkipped) {
    remedy =
        " (steps are planned by the lengths of their samples, and what takes "
        "the place of this one has another length; choose samples before, with "
        "leat.Dataset.filter)";
  }
  return Error(failed.code(), fmt::format("sample {} \"{}\": {}{}",
                                          context_.in_dataset(sample.id).value,
                                          context_.catalogue.key(sample.id),
                                          failed.message(), remedy))
      .because_of(failed.cause());
}

void BatchWork::put_together() {
  if (plan_error) {
    error = plan_error;
    return;
  }
  for (const auto& sample : samples_) {
    if (sample->has_failed()) {
      error = error_of(*sample);
      return;
    }
    substituted += sample->excluded == Excluded::kBad ? 1 : 0;
    skipped += sample->excluded == Excluded::kSkipped ? 1 : 0;
  }
  const Result<void> joined =
      within_memory([this] { return slots_.join_values(); });
  if (!joined) {
    error = joined.error();
    return;
  }
  for (const auto& sample : samples_) batch.content_hash += sample->hash;
}

}  // namespace leat
