#include "leat/pipeline/value_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "leat/base/buffer.h"

namespace leat {
namespace {

bool is_text(const Value& value) {
  return std::holds_alternative<std::string>(value);
}

bool is_empty(const ArrayValue& array) { return array.bytes.size() == 0; }

/// "a text", "int64", "float32 (3, 4)".
std::string described(const Value& value) {
  if (is_text(value)) return "a text";
  const TensorSpec& spec = std::get<ArrayValue>(value).spec;
  if (spec.shape.empty()) return std::string(to_string(spec.dtype));
  return fmt::format("{} ({})", to_string(spec.dtype),
                     fmt::join(spec.shape, ", "));
}

/// Whether two arrays can stand in one; an empty one fits into any Ragged.
bool fit(const ArrayValue& a, const ArrayValue& b, Joining joining) {
  if (joining == Joining::kStack) return a.spec == b.spec;
  if (is_empty(a) || is_empty(b)) return true;
  return a.spec.dtype == b.spec.dtype &&
         std::ranges::equal(a.spec.shape.begin() + 1, a.spec.shape.end(),
                            b.spec.shape.begin() + 1, b.spec.shape.end());
}

Error misfit(const std::string& key, const std::string& what,
             const std::string& other_key, const std::string& other,
             const ValueProgram& program) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the value of \"{}\" is {}, but that of \"{}\" is "
                           "{}; {}",
                           key, what, other_key, other, program.remedy()));
}

/// What was learned if `value` is not of that type, else null.
const LearnedShapes::Shape* other_type(const Value& value,
                                       const LearnedShapes::Shape& learned) {
  if (is_text(value) != learned.is_text) return &learned;
  if (is_text(value)) return nullptr;
  const TensorSpec& spec = std::get<ArrayValue>(value).spec;
  return spec.dtype == learned.spec.dtype ? nullptr : &learned;
}

}  // namespace

std::span<const std::byte> ValueRows::bytes(std::size_t row) const {
  const Value& value = *rows_[row];
  if (is_text(value)) return as_bytes(std::get<std::string>(value));
  return std::get<ArrayValue>(value).bytes.span();
}

// An empty list says nothing about its type: another row decides if it can.
std::size_t ValueRows::deciding_row(Joining joining) const {
  if (joining == Joining::kStack) return 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (is_text(value(row)) || !is_empty(array(row))) return row;
  }
  return 0;
}

Result<void> ValueRows::check_rows(const ValueProgram& program,
                                   const KeyOf& key_of,
                                   std::size_t first) const {
  const Joining joining = program.joining();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (joining == Joining::kRagged && !is_text(value(row)) &&
        array(row).spec.shape.empty()) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("the value of \"{}\" is one {} and no list; drop "
                      "ragged=True",
                      key_of(row), described(value(row))));
    }
    const bool fits =
        is_text(value(row)) == is_text(value(first)) &&
        (is_text(value(row)) || fit(array(row), array(first), joining));
    if (!fits) {
      return misfit(key_of(row), described(value(row)), key_of(first),
                    described(value(first)), program);
    }
  }
  return {};
}

Result<void> ValueRows::join(const ValueProgram& program, const KeyOf& key_of,
                             SlotPool& slots, LearnedShapes& learned,
                             std::size_t field, FieldArray& into) {
  const bool is_ragged = program.joining() == Joining::kRagged;
  const std::size_t first = deciding_row(program.joining());
  LEAT_TRY_VOID(check_rows(program, key_of, first));
  const bool decides =
      is_text(value(first)) || !is_ragged || !is_empty(array(first));
  LearnedShapes::Shape shape{.key = key_of(first),
                             .is_text = is_text(value(first))};
  if (!shape.is_text) shape.spec = array(first).spec;
  if (decides) learned.learn(field, shape);
  if (const auto known = learned.find(field)) {
    if (decides && other_type(value(first), *known) != nullptr) {
      return misfit(
          key_of(first), described(value(first)), known->key,
          known->is_text ? "a text" : std::string(to_string(known->spec.dtype)),
          program);
    }
    // Nothing but empty lists: of the type that the others have.
    if (!decides && !known->is_text) shape.spec = known->spec;
  }
  if (shape.is_text) {
    into.kind = ArrayKind::kStrings;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      into.strings.push_back(std::get<std::string>(value(row)));
    }
  } else if (is_ragged) {
    join_ragged(shape.spec, slots, into);
  } else {
    stack(slots, into);
  }
  rows_.clear();
  return {};
}

void ValueRows::stack(SlotPool& slots, FieldArray& into) const {
  const TensorSpec& spec = array(0).spec;
  into.kind = ArrayKind::kDense;
  into.dtype = spec.dtype;
  into.shape = {static_cast<std::int64_t>(rows_.size())};
  into.shape.insert(into.shape.end(), spec.shape.begin(), spec.shape.end());
  into.values = slots.take(rows_.size() * spec.size_bytes());
  auto out = into.values->bytes().begin();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    out = std::ranges::copy(array(row).bytes.span(), out).out;
  }
}

void ValueRows::join_ragged(const TensorSpec& first, SlotPool& slots,
                            FieldArray& into) const {
  into.kind = ArrayKind::kRagged;
  into.dtype = first.dtype;
  into.shape = first.shape;
  into.offsets = slots.take((rows_.size() + 1) * sizeof(std::int64_t));
  auto* offsets = reinterpret_cast<std::int64_t*>(into.offsets->bytes().data());
  std::size_t bytes = 0;
  offsets[0] = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    bytes += array(row).bytes.size();
    const std::int64_t count =
        is_empty(array(row)) ? 0 : array(row).spec.shape[0];
    offsets[row + 1] = offsets[row] + count;
  }
  into.shape[0] = offsets[rows_.size()];
  into.values = slots.take(bytes);
  auto out = into.values->bytes().begin();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    out = std::ranges::copy(array(row).bytes.span(), out).out;
  }
}

}  // namespace leat
