#include "leat/pipeline/batch_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/pipeline/content_hash.h"

namespace leat {
namespace {

// The overhead of a row besides its bytes: the structures that track it.
constexpr std::uint64_t kRowOverheadBytes = 1024;

}  // namespace

BatchSlots::BatchSlots(const RunContext& context, const Samples& samples,
                       Batch& batch)
    : context_(context), samples_(samples), batch_(batch) {}

void BatchSlots::hand_over() {
  reservation_.release();
  room_.release();
}

void BatchSlots::put_value(std::size_t field, std::size_t row, Value value) {
  values_[field].put(row, std::move(value));
}

/// The bytes that are fetched, or passed to the ops.
std::uint64_t BatchSlots::length_of(const DeliveredField& field,
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

/// The values of a field, and the array they are joined into.
std::uint64_t BatchSlots::values_bytes(std::size_t f) const {
  const DeliveredField& field = context_.fields[f];
  std::uint64_t bytes = 0;
  for (const auto& sample : samples_) {
    const std::uint64_t length = length_of(field, sample->id);
    bytes += 2 * field.value_program->most_bytes(length);
  }
  return bytes;
}

std::uint64_t BatchSlots::guessed_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    if (context_.fields[f].guesses()) bytes += values_bytes(f);
  }
  return bytes;
}

/// REQUIRES: the shapes of dense fields are known.
std::uint64_t BatchSlots::certain_bytes() const {
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

BatchSlots::Bytes BatchSlots::bytes_needed(std::uint64_t most_bytes) const {
  const std::uint64_t certain = certain_bytes();
  // The rest is for fetched bytes.
  const std::uint64_t most_guessed =
      certain < most_bytes ? (most_bytes - certain) / 2 : 0;
  return {.certain = certain,
          .guessed = std::min(guessed_bytes(), most_guessed)};
}

void BatchSlots::take(Reservation reservation, const Bytes& bytes) {
  room_.begin(context_.fields.size(), size(), bytes.guessed);
  reservation_ = std::move(reservation);
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    if (context_.fields[f].source == FieldSource::kOnlyRead) break;
    const FieldSource source = context_.fields[f].source;
    values_.emplace_back(source == FieldSource::kValue ? size() : 0);
    other_raw_.emplace_back(source == FieldSource::kRaw ? size() : 0);
    batch_.fields.push_back(empty_array(f));
  }
}

bool BatchSlots::finds_room_for_values(SampleWork& sample) {
  bool has_room = true;
  for (std::size_t f = 0; f < context_.fields.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (!field.guesses()) continue;
    const std::span<const std::byte> record = sample.record_of(field.column);
    const auto spec =
        record.empty()
            ? field.value_program->spec_for(sample.bytes_of(field.column))
            : field.cut_chain->value_rest->spec_for(record);
    if (!spec) continue;  // The error is reported later.
    const ValueRoom::Found found =
        room_.find(f, *spec, field.joining, field.value_program->pad_rule(),
                   context_.budget);
    if (found == ValueRoom::Found::kTooMuch) {
      sample.fail(
          exhausted("the values of a batch of {} samples need {} or more, but "
                    "{}, or lower the batch size",
                    size(), format_bytes(room_.needed_bytes()),
                    context_.budget.allows_in_words(room_.needed_bytes())));
    }
    has_room = has_room && found == ValueRoom::Found::kYes;
  }
  return has_room;
}

FieldArray BatchSlots::empty_array(std::size_t f) {
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
    case FieldSource::kValue:  // Nothing until its values are joined.
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

/// A row of a dense field has this spec.
TensorSpec BatchSlots::spec_of(std::size_t f) const {
  switch (context_.fields[f].source) {
    case FieldSource::kProgram: {
      const std::optional<TensorSpec> fixed =
          context_.fields[f].program->output();
      return fixed ? *fixed : context_.shapes.find(f)->spec;
    }
    case FieldSource::kFloat64:
      return {DType::kFloat64, {}};
    case FieldSource::kValid:
      return {DType::kBool, {}};
    case FieldSource::kSize:
      return {DType::kInt64, {2}};
    default:
      return {DType::kInt64, {}};
  }
}

FieldArray BatchSlots::raw_array(std::size_t column) {
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

std::span<std::byte> BatchSlots::dense_row(std::size_t field, std::size_t row) {
  const std::span<std::byte> all = batch_.fields[field].values->bytes();
  const std::size_t each = all.size() / size();
  return all.subspan(row * each, each);
}

std::span<std::byte> BatchSlots::raw_span(std::size_t field, std::size_t row) {
  FieldArray& array = batch_.fields[field];
  const auto* offsets =
      reinterpret_cast<const std::int64_t*>(array.offsets->bytes().data());
  return array.values->bytes().subspan(
      static_cast<std::size_t>(offsets[row]),
      static_cast<std::size_t>(offsets[row + 1] - offsets[row]));
}

std::span<const std::byte> BatchSlots::row_bytes(std::size_t field,
                                                 std::size_t row) {
  if (context_.fields[field].source == FieldSource::kValue) {
    return values_[field].bytes(row);
  }
  FieldArray& array = batch_.fields[field];
  switch (array.kind) {
    case ArrayKind::kDense:
      return dense_row(field, row);
    case ArrayKind::kRagged:
      if (other_raw_[field][row]) return other_raw_[field][row]->span();
      return raw_span(field, row);
    case ArrayKind::kStrings:
      return as_bytes(array.strings[row]);
  }
  return {};
}

void BatchSlots::put_raw(std::size_t field, std::size_t row,
                         std::span<const std::byte> bytes) {
  Buffer copy(bytes.size());
  std::ranges::copy(bytes, copy.span().begin());
  other_raw_[field][row] = std::move(copy);
}

/// Lays the bytes of a field out again if rows have others than were planned.
void BatchSlots::join_raw(std::size_t f) {
  const std::vector<std::optional<Buffer>>& others = other_raw_[f];
  if (std::ranges::none_of(others, [](const auto& one) { return !!one; })) {
    return;
  }
  FieldArray& array = batch_.fields[f];
  std::size_t all = 0;
  for (std::size_t row = 0; row < size(); ++row) {
    all += row_bytes(f, row).size();
  }
  SlotRef values = context_.slots.take(all);
  SlotRef offsets = context_.slots.take((size() + 1) * sizeof(std::int64_t));
  auto* const ends = reinterpret_cast<std::int64_t*>(offsets->bytes().data());
  auto out = values->bytes().begin();
  ends[0] = 0;
  for (std::size_t row = 0; row < size(); ++row) {
    const std::span<const std::byte> bytes = row_bytes(f, row);
    out = std::ranges::copy(bytes, out).out;
    ends[row + 1] = ends[row] + static_cast<std::int64_t>(bytes.size());
  }
  array.values = std::move(values);
  array.offsets = std::move(offsets);
  array.shape = {ends[size()]};
}

JoinRule BatchSlots::join_rule(std::size_t f) const {
  const DeliveredField& field = context_.fields[f];
  return {.joining = field.joining,
          .pad = field.value_program->pad_rule(),
          .remedy = field.value_program->remedy()};
}

Result<void> BatchSlots::join_values() {
  const auto key_of = [this](std::size_t row) {
    return std::string(context_.catalogue.key(samples_[row]->id));
  };
  for (std::size_t f = 0; f < other_raw_.size(); ++f) join_raw(f);
  for (std::size_t f = 0; f < values_.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source != FieldSource::kSize) continue;
    LEAT_TRY_VOID(values_[field.size_of].write_sizes(
        join_rule(field.size_of).pad.height_at, key_of,
        batch_.fields[f].values->bytes()));
  }
  for (std::size_t f = 0; f < values_.size(); ++f) {
    const DeliveredField& field = context_.fields[f];
    if (field.source != FieldSource::kValue) continue;
    Result<void> joined = values_[f].join(join_rule(f), key_of, context_.slots,
                                          context_.shapes, f, batch_.fields[f]);
    if (!joined) {
      return Error(joined.error())
          .while_doing(fmt::format("field \"{}\"", field.name));
    }
  }
  return {};
}

Hash128 BatchSlots::hash_of(std::size_t row) {
  ContentHasher hasher(batch_.epoch, batch_.ids[row]);
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
