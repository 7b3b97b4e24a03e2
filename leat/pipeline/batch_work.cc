#include "leat/pipeline/batch_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "leat/pipeline/content_hash.h"

namespace leat {
namespace {

// What a row costs besides its bytes: the structures in this file.
constexpr std::uint64_t kRowOverheadBytes = 1024;

bool is_bad_sample(ErrorCode code) {
  return code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound;
}

void store_number(std::span<std::byte> row, const void* number) {
  std::memcpy(row.data(), number, row.size());
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
}

std::optional<std::uint64_t> BatchWork::slot_bytes() const {
  std::uint64_t bytes = size() * kRowOverheadBytes;
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source == FieldSource::kProgram) {
      std::optional<TensorSpec> spec = field.program->output();
      if (!spec) {
        const auto learned = context_.shapes.find(f);
        if (!learned) return std::nullopt;
        spec = learned->spec;
      }
      bytes += size() * spec->size_bytes();
    } else if (field.source == FieldSource::kRaw) {
      for (const SampleId id : batch.ids) {
        bytes += context_.catalogue.range(field.column, id).length_bytes;
      }
    }
  }
  return bytes;
}

void BatchWork::take_slots(Reservation reservation) {
  reservation_ = std::move(reservation);
  const auto rows = static_cast<std::int64_t>(size());
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    FieldArray array{.name = field.name};
    TensorSpec spec{.dtype = DType::kInt64, .shape = {}};
    switch (field.source) {
      case FieldSource::kProgram: {
        const std::optional<TensorSpec> fixed = field.program->output();
        spec = fixed ? *fixed : context_.shapes.find(f)->spec;
        break;
      }
      case FieldSource::kRaw: {
        array.kind = ArrayKind::kRagged;
        array.offsets =
            context_.slots.take((size() + 1) * sizeof(std::int64_t));
        auto* offsets =
            reinterpret_cast<std::int64_t*>(array.offsets->bytes().data());
        offsets[0] = 0;
        for (std::size_t row = 0; row < size(); ++row) {
          const std::uint64_t length =
              context_.catalogue.range(field.column, batch.ids[row])
                  .length_bytes;
          offsets[row + 1] = offsets[row] + static_cast<std::int64_t>(length);
        }
        array.shape = {offsets[size()]};
        array.values =
            context_.slots.take(static_cast<std::size_t>(offsets[size()]));
        batch.fields.push_back(std::move(array));
        continue;
      }
      case FieldSource::kInt64:
      case FieldSource::kIndex:
        break;
      case FieldSource::kFloat64:
        spec.dtype = DType::kFloat64;
        break;
      case FieldSource::kValid:
        spec.dtype = DType::kUint8;
        break;
      case FieldSource::kString:
      case FieldSource::kKey:
        array.kind = ArrayKind::kStrings;
        array.strings.resize(size());
        batch.fields.push_back(std::move(array));
        continue;
    }
    array.dtype = spec.dtype;
    array.shape = {rows};
    array.shape.insert(array.shape.end(), spec.shape.begin(), spec.shape.end());
    array.values = context_.slots.take(size() * spec.size_bytes());
    batch.fields.push_back(std::move(array));
  }
}

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

Result<void> BatchWork::fill_program(SampleWork& sample, std::size_t field,
                                     std::size_t thread) {
  const Program& program = *context_.fields[field].program;
  std::span<const std::byte> bytes;
  for (const SampleWork::Fetched& fetched : sample.fetched) {
    if (fetched.field == field) bytes = fetched.bytes;
  }
  const std::span<std::byte> out = dense_row(field, sample.row);
  if (!program.output()) {
    LEAT_TRY(const TensorSpec found, program.output_for(bytes));
    const LearnedShapes::Shape first = *context_.shapes.find(field);
    if (found != first.spec) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("its shape is ({}), but that of \"{}\" is ({}); give all "
                      "the same "
                      "shape with leat.ops.Resize or RandomResizedCrop",
                      fmt::join(found.shape, ", "), first.key,
                      fmt::join(first.spec.shape, ", ")));
    }
  }
  RunNotes notes;
  const SampleRandom random{
      .seed = context_.seed, .epoch = epoch, .sample = sample.id};
  LEAT_TRY_VOID(
      program.run(bytes, random, *context_.scratch[thread], out, notes));
  if (notes.decode_warnings != 0) {
    context_.metrics.add(Metric::kPipelineDecodeWarnings,
                         notes.decode_warnings);
  }
  sample.times.decoded = SteadyClock().now() - notes.transform;
  return {};
}

Result<void> BatchWork::fill(SampleWork& sample, std::size_t thread) {
  const Catalogue& catalogue = context_.catalogue;
  sample.times.decoded = SteadyClock().now();  // Until here: for a thread.
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.is_fetched() &&
        catalogue.range(field.column, sample.id).is_missing()) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("the sample has no field \"{}\"",
                               catalogue.fields()[field.column].name));
    }
    switch (field.source) {
      case FieldSource::kProgram:
        LEAT_TRY_VOID(fill_program(sample, f, thread));
        break;
      case FieldSource::kRaw:
        for (const SampleWork::Fetched& fetched : sample.fetched) {
          const std::span<std::byte> to = raw_span(f, sample.row);
          // Where the network wrote into the slot itself, nothing is left to
          // do.
          if (fetched.field == f && fetched.bytes.data() != to.data()) {
            std::ranges::copy(fetched.bytes, to.begin());
          }
        }
        break;
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
        store_number(dense_row(f, sample.row), &sample.id.value);
        break;
      case FieldSource::kValid:
        dense_row(f, sample.row)[0] =
            sample.is_valid ? std::byte{1} : std::byte{0};
        break;
      case FieldSource::kString:
        batch.fields[f].strings[sample.row] =
            catalogue.string(field.column, sample.id);
        break;
      case FieldSource::kKey:
        batch.fields[f].strings[sample.row] = catalogue.key(sample.id);
        break;
    }
  }
  if (context_.has_hashes && sample.is_valid) sample.hash = hash_of(sample.row);
  return {};
}

Hash128 BatchWork::hash_of(std::size_t row) {
  ContentHasher hasher(epoch, samples_[row]->id);
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const FieldSource source = context_.fields[f].source;
    if (source == FieldSource::kIndex || source == FieldSource::kKey ||
        source == FieldSource::kValid) {
      continue;
    }
    hasher.field(context_.fields[f].name, row_bytes(f, row));
  }
  return hasher.digest();
}

bool BatchWork::finish(SampleWork& sample) {
  sample.times.finished = SteadyClock().now();
  // A sample that failed early has no later moments of its own.
  TimePoint at = sample.times.reserved;
  for (TimePoint* moment : {&sample.times.fetched, &sample.times.decoded}) {
    *moment = std::clamp(*moment, at, sample.times.finished);
    at = *moment;
  }
  sample.fetched.clear();  // Its bytes and their reservations go back now.
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  last_row = sample.row;
  put_together();
  ready = SteadyClock().now();
  is_ready.store(true, std::memory_order_release);
  return true;
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
    if (may_substitute || error) continue;
    error =
        Error(failed->code(),
              fmt::format("sample {} \"{}\": {}{}", sample->id.value,
                          context_.catalogue.key(sample->id), failed->message(),
                          is_bad_sample(failed->code())
                              ? " (on_error=\"substitute\" passes over "
                                "such samples)"
                              : ""));
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
  for (const auto& sample : samples_) batch.content_hash += sample->hash;
}

void BatchWork::substitute(std::size_t bad_row, std::size_t good_row) {
  samples_[bad_row]->id = samples_[good_row]->id;
  samples_[bad_row]->hash = samples_[good_row]->hash;
  batch.ids[bad_row] = batch.ids[good_row];
  for (std::size_t f = 0; f < batch.fields.size(); ++f) {
    FieldArray& array = batch.fields[f];
    if (context_.fields[f].source == FieldSource::kValid) continue;
    if (array.kind == ArrayKind::kDense) {
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
