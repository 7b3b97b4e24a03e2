#include "leat/pipeline/value_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"

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

/// Whether two arrays differ in height and width alone.
bool are_pictures_alike(const TensorSpec& a, const TensorSpec& b,
                        std::size_t height_at) {
  if (a.shape.size() != b.shape.size() || a.shape.size() < height_at + 2) {
    return false;
  }
  for (std::size_t d = 0; d < a.shape.size(); ++d) {
    const bool may_differ = d == height_at || d == height_at + 1;
    if (!may_differ && a.shape[d] != b.shape[d]) return false;
  }
  return a.dtype == b.dtype;
}

/// Whether two arrays can stand in one; an empty one fits into any Ragged.
bool fit(const ArrayValue& a, const ArrayValue& b, Joining joining,
         const PadRule& pad) {
  if (joining == Joining::kStack) return a.spec == b.spec;
  if (joining == Joining::kPadded) {
    return are_pictures_alike(a.spec, b.spec, pad.height_at);
  }
  if (joining == Joining::kShapes) {
    return a.spec.dtype == b.spec.dtype &&
           a.spec.shape.size() == b.spec.shape.size();
  }
  if (is_empty(a) || is_empty(b)) return true;
  return a.spec.dtype == b.spec.dtype &&
         std::ranges::equal(a.spec.shape.begin() + 1, a.spec.shape.end(),
                            b.spec.shape.begin() + 1, b.spec.shape.end());
}

Error misfit(const std::string& key, const std::string& what,
             const std::string& other_key, const std::string& other,
             const JoinRule& rule) {
  return invalid("the value of \"{}\" is {}, but that of \"{}\" is {}; {}", key,
                 what, other_key, other, rule.remedy);
}

/// The learned type if `value` has another, else null.
const LearnedShapes::Shape* other_type(const Value& value,
                                       const LearnedShapes::Shape& learned) {
  if (is_text(value) != learned.is_text) return &learned;
  if (is_text(value)) return nullptr;
  const TensorSpec& spec = std::get<ArrayValue>(value).spec;
  return spec.dtype == learned.spec.dtype ? nullptr : &learned;
}

Error no_picture(const std::string& key, const Value& value) {
  return invalid(
      "the value of \"{}\" is {}, and no picture of three dimensions", key,
      described(value));
}

}  // namespace

std::span<const std::byte> ValueRows::bytes(std::size_t row) const {
  const Value& value = *rows_[row];
  if (is_text(value)) return as_bytes(std::get<std::string>(value));
  return std::get<ArrayValue>(value).bytes.span();
}

std::span<const std::int64_t> ValueRows::shape(std::size_t row) const {
  const Value& value = *rows_[row];
  if (is_text(value)) return {};
  return std::get<ArrayValue>(value).spec.shape;
}

Result<void> ValueRows::write_sizes(std::size_t height_at, const KeyOf& key_of,
                                    std::span<std::byte> into) const {
  auto* sizes = reinterpret_cast<std::int64_t*>(into.data());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const std::span<const std::int64_t> all = shape(row);
    if (all.size() < height_at + 2) return no_picture(key_of(row), value(row));
    *sizes++ = all[height_at];
    *sizes++ = all[height_at + 1];
  }
  return {};
}

bool ValueRows::are_equal() const {
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    if (is_text(value(row)) != is_text(value(0))) return false;
    if (!is_text(value(0)) && array(row).spec != array(0).spec) return false;
  }
  return true;
}

// An empty list says nothing about its type: another row decides if it can.
std::size_t ValueRows::deciding_row(Joining joining) const {
  if (joining != Joining::kRagged) return 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (is_text(value(row)) || !is_empty(array(row))) return row;
  }
  return 0;
}

Result<void> ValueRows::check_rows(const JoinRule& rule, Joining joining,
                                   const KeyOf& key_of,
                                   std::size_t first) const {
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (joining == Joining::kPadded &&
        (is_text(value(row)) ||
         array(row).spec.shape.size() < rule.pad.height_at + 2)) {
      return no_picture(key_of(row), value(row));
    }
    if ((joining == Joining::kRagged || joining == Joining::kShapes) &&
        !is_text(value(row)) && array(row).spec.shape.empty()) {
      return invalid(
          "the value of \"{}\" is one {} and no list; drop ragged=True",
          key_of(row), described(value(row)));
    }
    const bool fits = is_text(value(row)) == is_text(value(first)) &&
                      (is_text(value(row)) ||
                       fit(array(row), array(first), joining, rule.pad));
    if (!fits) {
      return misfit(key_of(row), described(value(row)), key_of(first),
                    described(value(first)), rule);
    }
  }
  return {};
}

Result<void> ValueRows::join(const JoinRule& rule, const KeyOf& key_of,
                             SlotPool& slots, LearnedShapes& learned,
                             std::size_t field, FieldArray& into) {
  Joining joining = rule.joining;
  if (joining == Joining::kEither) {
    joining = are_equal() ? Joining::kStack : Joining::kShapes;
  }
  const std::size_t first = deciding_row(joining);
  LEAT_TRY_VOID(check_rows(rule, joining, key_of, first));
  const bool decides = is_text(value(first)) || joining != Joining::kRagged ||
                       !is_empty(array(first));
  LearnedShapes::Shape shape{.key = key_of(first),
                             .is_text = is_text(value(first))};
  if (!shape.is_text) shape.spec = array(first).spec;
  if (decides) learned.learn(field, shape);
  if (const auto known = learned.find(field)) {
    if (decides && other_type(value(first), *known) != nullptr) {
      return misfit(
          key_of(first), described(value(first)), known->key,
          known->is_text ? "a text" : std::string(to_string(known->spec.dtype)),
          rule);
    }
    // Nothing but empty lists: they take the type of the others.
    if (!decides && !known->is_text) shape.spec = known->spec;
  }
  if (shape.is_text) {
    into.kind = ArrayKind::kStrings;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      into.strings.push_back(std::get<std::string>(value(row)));
    }
  } else if (joining == Joining::kPadded) {
    LEAT_TRY_VOID(pad(rule.pad, key_of, slots, into));
  } else if (joining == Joining::kShapes) {
    join_shapes(slots, into);
  } else if (joining == Joining::kRagged) {
    join_ragged(shape.spec, slots, into);
  } else {
    stack(slots, into);
  }
  rows_.clear();
  return {};
}

void ValueRows::copy_all(std::span<std::byte> into) const {
  auto out = into.begin();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    out = std::ranges::copy(array(row).bytes.span(), out).out;
  }
}

void ValueRows::stack(SlotPool& slots, FieldArray& into) const {
  const TensorSpec& spec = array(0).spec;
  into.kind = ArrayKind::kDense;
  into.dtype = spec.dtype;
  into.shape = {static_cast<std::int64_t>(rows_.size())};
  into.shape.insert(into.shape.end(), spec.shape.begin(), spec.shape.end());
  into.values = slots.take(rows_.size() * spec.size_bytes());
  copy_all(into.values->bytes());
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
  copy_all(into.values->bytes());
}

void ValueRows::join_shapes(SlotPool& slots, FieldArray& into) const {
  const std::size_t dimensions = array(0).spec.shape.size();
  const std::size_t item_bytes = size_bytes_of(array(0).spec.dtype);
  into.kind = ArrayKind::kRagged;
  into.dtype = array(0).spec.dtype;
  into.offsets = slots.take((rows_.size() + 1) * sizeof(std::int64_t));
  into.shapes = slots.take(rows_.size() * dimensions * sizeof(std::int64_t));
  auto* offsets = reinterpret_cast<std::int64_t*>(into.offsets->bytes().data());
  auto* shapes = reinterpret_cast<std::int64_t*>(into.shapes->bytes().data());
  std::size_t bytes = 0;
  *offsets++ = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    shapes = std::ranges::copy(array(row).spec.shape, shapes).out;
    bytes += array(row).bytes.size();
    *offsets++ = static_cast<std::int64_t>(bytes / item_bytes);
  }
  into.shape = {static_cast<std::int64_t>(bytes / item_bytes)};
  into.values = slots.take(bytes);
  copy_all(into.values->bytes());
}

}  // namespace leat
