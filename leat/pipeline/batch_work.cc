#include "leat/pipeline/batch_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "leat/base/units.h"

namespace leat {
namespace {

// The cost of a row besides its bytes: the structures in this file.
constexpr std::uint64_t kRowOverheadBytes = 1024;

bool is_bad_sample(ErrorCode code) {
  return code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound;
}

}  // namespace

BatchWork::BatchWork(const RunContext& context, std::uint64_t epoch_number,
                     std::uint64_t step_number, std::vector<SampleId> ids)
    : epoch(epoch_number),
      step(step_number),
      context_(context),
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

/// The length of the bytes that are fetched, or given to the ops.
std::uint64_t BatchWork::length_of(const DeliveredField& field,
                                   SampleId id) const {
  switch (field.kind) {
    case FieldKind::kBytes:
      return context_.catalogue.range(field.column, id).length_bytes;
    case FieldKind::kString:
      return context_.catalogue.string(field.column, id).size();
    case FieldKind::kInt64:
    case FieldKind::kFloat64:
      break;
  }
  return sizeof(std::int64_t);
}

/// The values of a field, and the array that joins them.
std::uint64_t BatchWork::values_bytes(std::size_t f) const {
  const DeliveredField& field = context_.fields[f];
  std::uint64_t bytes = 0;
  for (const auto& sample : samples_) {
    const std::uint64_t length = length_of(field, sample->id);
    bytes += 2 * field.value_program->most_bytes(length);
  }
  return bytes;
}

std::uint64_t BatchWork::guessed_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    if (context_.fields[f].guesses()) bytes += values_bytes(f);
  }
  return bytes;
}

/// REQUIRES: the shapes of dense fields are known.
std::uint64_t BatchWork::certain_bytes() const {
  std::uint64_t bytes = size() * kRowOverheadBytes;
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source == FieldSource::kProgram) {
      bytes += size() * spec_of(f).size_bytes();
    } else if (field.source == FieldSource::kValue) {
      if (!field.guesses()) bytes += values_bytes(f);
    } else if (field.is_fetched() && field.source != FieldSource::kOnlyRead) {
      for (const auto& sample : samples_) bytes += length_of(field, sample->id);
    }
  }
  return bytes;
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

BatchWork::SlotBytes BatchWork::slot_bytes(std::uint64_t most_bytes) const {
  const std::uint64_t certain = certain_bytes();
  // The rest is for fetched bytes.
  const std::uint64_t most_guessed =
      certain < most_bytes ? (most_bytes - certain) / 2 : 0;
  return {.certain = certain,
          .guessed = std::min(guessed_bytes(), most_guessed)};
}

void BatchWork::take_slots(Reservation reservation, const SlotBytes& bytes) {
  room_.begin(context_.fields.size(), size(), bytes.guessed);
  reservation_ = std::move(reservation);
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    if (context_.fields[f].source == FieldSource::kOnlyRead) break;
    const bool has_values = context_.fields[f].source == FieldSource::kValue;
    values_.emplace_back(has_values ? size() : 0);
    batch.fields.push_back(empty_array(f));
  }
}

bool BatchWork::finds_room_for_values(SampleWork& sample) {
  bool has_room = true;
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (!field.guesses()) continue;
    const std::span<const std::byte> record = sample.record_of(field.column);
    const auto spec =
        record.empty()
            ? field.value_program->spec_for(sample.bytes_of(field.column))
            : field.cut_chain->value_rest->spec_for(record);
    if (!spec) continue;  // It will be said why.
    const ValueRoom::Found found =
        room_.find(f, *spec, field.joining, field.value_program->pad_rule(),
                   context_.budget);
    if (found == ValueRoom::Found::kTooMuch) {
      sample.fail(Error(
          ErrorCode::kResourceExhausted,
          fmt::format("the values of a batch of {} samples need {} or more, "
                      "but memory= allows {}; raise memory=, or lower the "
                      "batch size",
                      size(), format_bytes(room_.needed_bytes()),
                      format_bytes(context_.budget.capacity_bytes()))));
    }
    has_room = has_room && found == ValueRoom::Found::kYes;
  }
  return has_room;
}

FieldArray BatchWork::empty_array(std::size_t f) {
  const DeliveredField& field = context_.fields[f];
  FieldArray array{.name = field.name};
  switch (field.source) {
    case FieldSource::kRaw:
      array = raw_array(field.column);
      array.name = field.name;
      break;
    case FieldSource::kString:
    case FieldSource::kKey:
      array.kind = ArrayKind::kStrings;
      array.strings.resize(size());
      break;
    case FieldSource::kValue:  // Until its values are joined.
      break;
    default: {
      const TensorSpec spec = spec_of(f);
      array.dtype = spec.dtype;
      array.shape = {static_cast<std::int64_t>(size())};
      array.shape.insert(array.shape.end(), spec.shape.begin(),
                         spec.shape.end());
      array.values = context_.slots.take(size() * spec.size_bytes());
    }
  }
  return array;
}

/// The spec of a row of a dense field.
TensorSpec BatchWork::spec_of(std::size_t f) const {
  switch (context_.fields[f].source) {
    case FieldSource::kProgram: {
      const std::optional<TensorSpec> fixed =
          context_.fields[f].program->output();
      return fixed ? *fixed : context_.shapes.find(f)->spec;
    }
    case FieldSource::kFloat64:
      return {DType::kFloat64, {}};
    case FieldSource::kValid:
      return {DType::kUint8, {}};
    case FieldSource::kSize:
      return {DType::kInt64, {2}};
    default:
      return {DType::kInt64, {}};
  }
}

FieldArray BatchWork::raw_array(std::size_t column) {
  FieldArray array{.kind = ArrayKind::kRagged};
  array.offsets = context_.slots.take((size() + 1) * sizeof(std::int64_t));
  auto* offsets =
      reinterpret_cast<std::int64_t*>(array.offsets->bytes().data());
  offsets[0] = 0;
  for (std::size_t row = 0; row < size(); ++row) {
    const std::uint64_t length =
        context_.catalogue.range(column, samples_[row]->id).length_bytes;
    offsets[row + 1] = offsets[row] + static_cast<std::int64_t>(length);
  }
  array.shape = {offsets[size()]};
  array.values = context_.slots.take(static_cast<std::size_t>(offsets[size()]));
  return array;
}

BatchWork::RowEnd BatchWork::finish(SampleWork& sample) {
  const TimePoint now = SteadyClock().now();
  sample.times.finished = now;
  // A sample that failed early has no later moments of its own.
  TimePoint at = sample.times.reserved;
  for (TimePoint* moment : {&sample.times.fetched, &sample.times.decoded}) {
    *moment = std::clamp(*moment, at, sample.times.finished);
    at = *moment;
  }
  sample.fetched.clear();  // Its bytes and their reservations go back now.
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
  if (Result<void> joined = join_values(); !joined) {
    error = joined.error();
    return;
  }
  for (const auto& sample : samples_) batch.content_hash += sample->hash;
}

JoinRule BatchWork::join_rule(std::size_t f) const {
  const DeliveredField& field = context_.fields[f];
  return {.joining = field.joining,
          .pad = field.value_program->pad_rule(),
          .remedy = field.value_program->remedy()};
}

Result<void> BatchWork::join_values() {
  const auto key_of = [this](std::size_t row) {
    return std::string(context_.catalogue.key(samples_[row]->id));
  };
  for (std::size_t f = 0; f < values_.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source != FieldSource::kSize) continue;
    LEAT_TRY_VOID(values_[field.size_of].write_sizes(
        join_rule(field.size_of).pad.height_at, key_of,
        batch.fields[f].values->bytes()));
  }
  for (std::size_t f = 0; f < values_.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source != FieldSource::kValue) continue;
    Result<void> joined = values_[f].join(join_rule(f), key_of, context_.slots,
                                          context_.shapes, f, batch.fields[f]);
    if (!joined) {
      return Error(joined.error())
          .while_doing(fmt::format("field \"{}\"", field.name));
    }
  }
  return {};
}

void BatchWork::substitute(std::size_t bad_row, std::size_t good_row) {
  samples_[bad_row]->id = samples_[good_row]->id;
  samples_[bad_row]->hash = samples_[good_row]->hash;
  batch.ids[bad_row] = batch.ids[good_row];
  for (std::size_t f = 0; f < batch.fields.size(); ++f) {
    FieldArray& array = batch.fields[f];
    if (context_.fields[f].source == FieldSource::kValid) continue;
    if (context_.fields[f].source == FieldSource::kValue) {
      values_[f].substitute(bad_row, good_row);
    } else if (array.kind == ArrayKind::kDense) {
      std::ranges::copy(dense_row(f, good_row), dense_row(f, bad_row).begin());
    } else if (array.kind == ArrayKind::kStrings) {
      array.strings[bad_row] = array.strings[good_row];
    } else {
      substitute_ragged(array, bad_row, good_row);
    }
  }
}

void BatchWork::substitute_ragged(FieldArray& array, std::size_t bad_row,
                                  std::size_t good_row) {
  auto* offsets =
      reinterpret_cast<std::int64_t*>(array.offsets->bytes().data());
  const std::span<std::byte> old = array.values->bytes();
  const std::int64_t good_size = offsets[good_row + 1] - offsets[good_row];
  const std::int64_t change =
      good_size - (offsets[bad_row + 1] - offsets[bad_row]);
  SlotRef values =
      context_.slots.take(static_cast<std::size_t>(offsets[size()] + change));
  auto out = values->bytes().begin();
  for (std::size_t row = 0; row < size(); ++row) {
    const std::size_t from = row == bad_row ? good_row : row;
    out = std::ranges::copy(old.subspan(static_cast<std::size_t>(offsets[from]),
                                        static_cast<std::size_t>(
                                            offsets[from + 1] - offsets[from])),
                            out)
              .out;
  }
  for (std::size_t row = bad_row + 1; row <= size(); ++row) {
    offsets[row] += change;
  }
  array.values = std::move(values);
  array.shape = {offsets[size()]};
}

}  // namespace leat
