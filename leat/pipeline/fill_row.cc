// How one row of a batch is filled: the part of BatchWork that the executor's
// threads run.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/pipeline/batch_work.h"
#include "leat/pipeline/proven_bytes.h"
#include "leat/pipeline/record_maker.h"
#include "leat/pipeline/substitution.h"

namespace leat {
namespace {

/// A sample that is tried takes up to this much unreserved, as the scratch of
/// its thread does.
constexpr std::uint64_t kMostTriedUnreserved = 8 * kMiB;

/// For the result of a sample that is tried, beside its slot. Never waits: the
/// memory may be free only once the sample's own batch is delivered.
Result<Reservation> room_to_try(std::uint64_t bytes, MemoryBudget& budget) {
  if (bytes <= kMostTriedUnreserved) return Reservation();
  std::optional<Reservation> room = budget.try_reserve(bytes);
  if (room) return *std::move(room);
  return exhausted("trying the sample takes {}, and memory= has no room for it",
                   format_bytes(bytes));
}

void store_number(std::span<std::byte> row, const void* number) {
  std::memcpy(row.data(), number, row.size());
}

}  // namespace

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
    return invalid("its type is {}, but that of \"{}\" is {}; {}",
                   to_string(found.dtype), first.key,
                   to_string(first.spec.dtype), remedy);
  }
  return invalid("its shape is ({}), but that of \"{}\" is ({}); {}",
                 fmt::join(found.shape, ", "), first.key,
                 fmt::join(first.spec.shape, ", "), remedy);
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
    if (Result<void> fits = check_shape(field, found); !fits) {
      if (!may_pass_over(context_)) return fits;
      // If its ops pass it over, no batch has that shape. A large one for which
      // there is no memory now is not tried, and refused by its shape.
      sample.forget();
      Result<void> tried = try_row(sample, thread, {});
      const bool is_passed_over =
          !tried && may_replace(context_, sample, tried.error());
      return is_passed_over ? tried : fits;
    }
  }
  RunNotes notes;
  LEAT_TRY_VOID(program.run({bytes, &sample}, random_of(sample),
                            *context_.scratch[thread],
                            slots_.dense_row(field, sample.row), notes));
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
  slots_.put_value(field, sample.row, std::move(value));
  note(sample, notes);
  return {};
}

Result<void> BatchWork::prove(SampleWork& sample, const std::stop_token& stop) {
  const Catalogue& catalogue = context_.catalogue;
  for (SampleWork::Fetched& fetched : sample.fetched) {
    if (!sample.record_of(fetched.column).empty() ||
        are_right(catalogue, fetched.column, sample.id, fetched.bytes)) {
      continue;
    }
    context_.say_wrong_bytes(sample.id);
    const ByteRange range = catalogue.range(fetched.column, sample.id);
    LEAT_TRY(fetched.buffer,
             read_proven(context_.store, context_.object_id(range.object),
                         catalogue, fetched.column, sample.id, stop));
    fetched.bytes = fetched.buffer.span();
  }
  return {};
}

Result<void> BatchWork::fill(SampleWork& sample, std::size_t thread,
                             const std::stop_token& stop) {
  if (context_.has_checksums) LEAT_TRY_VOID(prove(sample, stop));
  RecordMaker maker(context_, slots_, random_of(sample), thread);
  for (SampleWork::Fetched& fetched : sample.fetched) {
    if (fetched.record_work != nullptr) maker.make(sample, fetched);
  }
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    LEAT_TRY_VOID(check_there(field, sample));
    const RestTimer timer(field.is_fetched() ? sample.trial_of(field.column)
                                             : nullptr);
    LEAT_TRY_VOID(fill_field(sample, f, thread));
  }
  for (SampleWork::Fetched& fetched : sample.fetched) {
    RecordWork* const work = fetched.record_work.get();
    if (work != nullptr && work->trial != nullptr)
      RecordMaker::end_trial(*work);
  }
  if (context_.has_hashes && sample.is_valid) {
    sample.hash = slots_.hash_of(sample.row);
  }
  return {};
}

Result<void> BatchWork::check_there(const DeliveredField& field,
                                    const SampleWork& sample) const {
  const Catalogue& catalogue = context_.catalogue;
  if (!field.is_fetched() ||
      !catalogue.range(field.column, sample.id).is_missing()) {
    return {};
  }
  return not_found("the sample has no field \"{}\"",
                   catalogue.fields()[field.column].name);
}

Result<void> BatchWork::try_row(SampleWork& sample, std::size_t thread,
                                const std::stop_token& stop) {
  if (context_.has_checksums) LEAT_TRY_VOID(prove(sample, stop));
  Scratch& scratch = *context_.scratch[thread];
  RunNotes counted_when_filled;
  for (const DeliveredField& field : context_.fields) {
    LEAT_TRY_VOID(check_there(field, sample));
    const std::span<const std::byte> record = sample.record_of(field.column);
    const SampleInput input{
        record.empty() ? sample.bytes_of(field.column) : record, &sample};
    if (field.source == FieldSource::kProgram) {
      const Program& program =
          record.empty() ? *field.program : *field.cut_chain->rest;
      LEAT_TRY(const TensorSpec spec, program.output_for(input.encoded));
      LEAT_TRY(const Reservation room,
               room_to_try(spec.size_bytes(), context_.budget));
      Buffer out(spec.size_bytes());
      LEAT_TRY_VOID(program.run(input, random_of(sample), scratch, out.span(),
                                counted_when_filled));
    } else if (field.source == FieldSource::kValue) {
      const ValueProgram& program =
          record.empty() ? *field.value_program : *field.cut_chain->value_rest;
      LEAT_TRY_VOID(
          program.run(input, random_of(sample), scratch, counted_when_filled));
    }
  }
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
      if (sample.excluded) {
        slots_.put_raw(f, sample.row, from);
        break;
      }
      const std::span<std::byte> to = slots_.raw_span(f, sample.row);
      // Nothing is left to do if the network wrote into the slot itself.
      if (from.data() != to.data()) std::ranges::copy(from, to.begin());
      break;
    }
    case FieldSource::kInt64: {
      const std::int64_t value = catalogue.int64(field.column, sample.id);
      store_number(slots_.dense_row(f, sample.row), &value);
      break;
    }
    case FieldSource::kFloat64: {
      const double value = catalogue.float64(field.column, sample.id);
      store_number(slots_.dense_row(f, sample.row), &value);
      break;
    }
    case FieldSource::kIndex:
      store_number(slots_.dense_row(f, sample.row),
                   &batch.ids[sample.row].value);
      break;
    case FieldSource::kValid:
      slots_.dense_row(f, sample.row)[0] =
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

}  // namespace leat
