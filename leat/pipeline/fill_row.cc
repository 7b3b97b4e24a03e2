// How one row of a batch is filled: the part of BatchWork that the executor's
// threads run.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/content_hash.h"

namespace leat {
namespace {

void store_number(std::span<std::byte> row, const void* number) {
  std::memcpy(row.data(), number, row.size());
}

}  // namespace

std::span<std::byte> BatchWork::dense_row(std::size_t field, std::size_t row) {
  const std::span<std::byte> all = batch.fields[field].values->bytes();
  const std::size_t each = all.size() / size();
  return all.subspan(row * each, each);
}

std::span<std::byte> BatchWork::raw_span(std::size_t field, std::size_t row) {
  FieldArray& array = batch.fields[field];
  const auto* offsets =
      reinterpret_cast<const std::int64_t*>(array.offsets->bytes().data());
  return array.values->bytes().subspan(
      static_cast<std::size_t>(offsets[row]),
      static_cast<std::size_t>(offsets[row + 1] - offsets[row]));
}

std::span<const std::byte> BatchWork::row_bytes(std::size_t field,
                                                std::size_t row) {
  if (context_.fields[field].source == FieldSource::kValue) {
    return values_[field].bytes(row);
  }
  FieldArray& array = batch.fields[field];
  switch (array.kind) {
    case ArrayKind::kDense:
      return dense_row(field, row);
    case ArrayKind::kRagged:
      return raw_span(field, row);
    case ArrayKind::kStrings:
      return as_bytes(array.strings[row]);
  }
  return {};
}

SampleRandom BatchWork::random_of(const SampleWork& sample) const {
  return {.seed = context_.seed,
          .epoch = epoch,
          .sample = context_.draws_by_position
                        ? SampleId{sample.position}
                        : context_.in_dataset(sample.id)};
}

void BatchWork::note(SampleWork& sample, const RunNotes& notes) {
  if (notes.decode_warnings != 0) {
    context_.metrics.add(Metric::kPipelineDecodeWarnings,
                         notes.decode_warnings);
  }
  sample.times.decoded = SteadyClock().now() - notes.transform;
}

Result<void> BatchWork::check_shape(std::size_t field,
                                    const TensorSpec& found) const {
  const LearnedShapes::Shape first = *context_.shapes.find(field);
  if (found == first.spec) return {};
  const std::string remedy = context_.fields[field].program->remedy();
  if (found.dtype != first.spec.dtype) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("its type is {}, but that of \"{}\" is {}; {}",
                             to_string(found.dtype), first.key,
                             to_string(first.spec.dtype), remedy));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("its shape is ({}), but that of \"{}\" is ({}); {}",
                           fmt::join(found.shape, ", "), first.key,
                           fmt::join(first.spec.shape, ", "), remedy));
}

Result<void> BatchWork::fill_program(SampleWork& sample, std::size_t field,
                                     std::size_t thread) {
  const DeliveredField& from = context_.fields[field];
  const std::span<const std::byte> record = sample.record_of(from.column);
  const Program& program =
      record.empty() ? *from.program : *from.cut_chain->rest;
  const std::span<const std::byte> bytes =
      record.empty() ? sample.bytes_of(from.column) : record;
  if (!program.output()) {
    LEAT_TRY(const TensorSpec found, program.output_for(bytes));
    LEAT_TRY_VOID(check_shape(field, found));
  }
  RunNotes notes;
  LEAT_TRY_VOID(program.run({bytes, &sample}, random_of(sample),
                            *context_.scratch[thread],
                            dense_row(field, sample.row), notes));
  note(sample, notes);
  return {};
}

Result<void> BatchWork::fill_value(SampleWork& sample, std::size_t field,
                                   std::size_t thread) {
  const DeliveredField& from = context_.fields[field];
  const std::span<const std::byte> record = sample.record_of(from.column);
  const ValueProgram& program =
      record.empty() ? *from.value_program : *from.cut_chain->value_rest;
  const std::span<const std::byte> bytes =
      record.empty() ? sample.bytes_of(from.column) : record;
  RunNotes notes;
  LEAT_TRY(Value value, program.run({bytes, &sample}, random_of(sample),
                                    *context_.scratch[thread], notes));
  values_[field].put(sample.row, std::move(value));
  note(sample, notes);
  return {};
}

Result<void> BatchWork::fill(SampleWork& sample, std::size_t thread) {
  const Catalogue& catalogue = context_.catalogue;
  for (SampleWork::Fetched& fetched : sample.fetched) {
    if (fetched.record_work != nullptr) make_record(sample, fetched, thread);
  }
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.is_fetched() &&
        catalogue.range(field.column, sample.id).is_missing()) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("the sample has no field \"{}\"",
                               catalogue.fields()[field.column].name));
    }
    FormTrial* const trial =
        field.is_fetched() ? sample.trial_of(field.column) : nullptr;
    LEAT_TRY_VOID(trial == nullptr ? fill_field(sample, f, thread)
                                   : fill_rest(sample, f, thread, *trial));
  }
  for (SampleWork::Fetched& fetched : sample.fetched) {
    RecordWork* const work = fetched.record_work.get();
    if (work != nullptr && work->trial != nullptr) end_trial(*work);
  }
  if (context_.has_hashes && sample.is_valid) sample.hash = hash_of(sample.row);
  return {};
}

Result<void> BatchWork::fill_field(SampleWork& sample, std::size_t f,
                                   std::size_t thread) {
  const Catalogue& catalogue = context_.catalogue;
  const DeliveredField& field = context_.fields[f];
  switch (field.source) {
    case FieldSource::kProgram:
      return fill_program(sample, f, thread);
    case FieldSource::kValue:
      return fill_value(sample, f, thread);
    case FieldSource::kRaw: {
      const std::span<const std::byte> from = sample.bytes_of(field.column);
      const std::span<std::byte> to = raw_span(f, sample.row);
      // If the network wrote into the slot itself, nothing is left to do.
      if (from.data() != to.data()) std::ranges::copy(from, to.begin());
      break;
    }
    case FieldSource::kInt64: {
      const std::int64_t value = catalogue.int64(field.column, sample.id);
      store_number(dense_row(f, sample.row), &value);
      break;
    }
    case FieldSource::kFloat64: {
      const double value = catalogue.float64(field.column, sample.id);
      store_number(dense_row(f, sample.row), &value);
      break;
    }
    case FieldSource::kIndex:
      store_number(dense_row(f, sample.row), &batch.ids[sample.row].value);
      break;
    case FieldSource::kValid:
      dense_row(f, sample.row)[0] =
          sample.is_valid ? std::byte{1} : std::byte{0};
      break;
    case FieldSource::kSize:  // Written when the pictures are joined.
      break;
    case FieldSource::kString:
      batch.fields[f].strings[sample.row] =
          catalogue.string(field.column, sample.id);
      break;
    case FieldSource::kOnlyRead:
      break;
    case FieldSource::kKey:
      batch.fields[f].strings[sample.row] = catalogue.key(sample.id);
      break;
  }
  return {};
}

Hash128 BatchWork::hash_of(std::size_t row) {
  ContentHasher hasher(epoch, batch.ids[row]);
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const FieldSource source = context_.fields[f].source;
    if (source == FieldSource::kOnlyRead) break;
    if (source == FieldSource::kIndex || source == FieldSource::kKey ||
        source == FieldSource::kValid || source == FieldSource::kSize) {
      continue;
    }
    hasher.field(context_.fields[f].name, row_bytes(f, row));
    const Joining joining = context_.fields[f].joining;
    if (joining == Joining::kShapes || joining == Joining::kPadded) {
      hasher.shape(values_[f].shape(row));
    }
  }
  return hasher.digest();
}

}  // namespace leat
