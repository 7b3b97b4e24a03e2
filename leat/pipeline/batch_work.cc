#include "leat/pipeline/batch_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace leat {
namespace {

bool is_bad_sample(ErrorCode code) {
  return code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound;
}

}  // namespace

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
  sample.fetched.clear();  // Its bytes and their reservations are returned now.
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

void BatchWork::put_together() {
  if (plan_error) {
    error = plan_error;
    return;
  }
  std::vector<std::size_t> bad;
  for (const auto& sample : samples_) {
    const std::optional<Error> failed = sample->error();
    if (!failed) continue;
    bad.push_back(sample->row);
    const bool may_substitute = context_.on_error == OnError::kSubstitute &&
                                is_bad_sample(failed->code());
    if (error) continue;
    const std::string what = fmt::format(
        "sample {} \"{}\": {}", context_.in_dataset(sample->id).value,
        context_.catalogue.key(sample->id), failed->message());
    if (may_substitute) {
      if (first_bad.empty()) first_bad = what;
      continue;
    }
    constexpr std::string_view kRemedy =
        " (on_error=\"substitute\" passes over such samples)";
    error = Error(failed->code(),
                  fmt::format("{}{}", what,
                              is_bad_sample(failed->code()) ? kRemedy : ""))
                .because_of(failed->cause());
  }
  if (error) return;
  if (bad.size() == size() && !bad.empty()) {
    error = Error(*samples_[bad[0]]->error())
                .while_doing(fmt::format(
                    "no sample of the batch is good; the first is \"{}\"",
                    context_.catalogue.key(samples_[bad[0]]->id)));
    return;
  }
  for (const std::size_t row : bad) {
    std::size_t good = (row + 1) % size();
    while (samples_[good]->has_failed()) good = (good + 1) % size();
    substitute(row, good);
    ++substituted;
  }
  if (Result<void> joined = slots_.join_values(); !joined) {
    error = joined.error();
    return;
  }
  for (const auto& sample : samples_) batch.content_hash += sample->hash;
}

void BatchWork::substitute(std::size_t bad_row, std::size_t good_row) {
  samples_[bad_row]->id = samples_[good_row]->id;
  samples_[bad_row]->hash = samples_[good_row]->hash;
  batch.ids[bad_row] = batch.ids[good_row];
  slots_.substitute(bad_row, good_row);
}

}  // namespace leat
