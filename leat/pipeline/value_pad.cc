// Pictures of several sizes in one dense array: see PadRule.

#include <algorithm>
#include <array>
#include <cstring>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/small_floats.h"
#include "leat/pipeline/ops/store_numbers.h"
#include "leat/pipeline/value_rows.h"

namespace leat {
namespace {

/// One item of a type, as its bytes.
struct Item {
  std::array<std::byte, 8> bytes{};
  std::size_t size = 0;
};

Result<Item> item_of(DType dtype, double number) {
  Item item;
  item.size = size_bytes_of(dtype);
  if (dtype == DType::kFloat16 || dtype == DType::kBfloat16) {
    const auto single = static_cast<float>(number);
    const std::uint16_t half =
        dtype == DType::kFloat16 ? to_float16(single) : to_bfloat16(single);
    std::memcpy(item.bytes.data(), &half, sizeof half);
    return item;
  }
  const double one[] = {number};
  Result<void> stored =
      store_numbers(one, dtype, std::span(item.bytes).first(item.size));
  if (!stored) return Error(stored.error()).while_doing("PadTo(fill=...)");
  return item;
}

void fill(std::span<std::byte> into, const Item& item) {
  const bool is_one_byte =
      std::ranges::all_of(std::span(item.bytes).first(item.size),
                          [&](std::byte b) { return b == item.bytes[0]; });
  if (is_one_byte) {
    std::ranges::fill(into, item.bytes[0]);
    return;
  }
  for (std::size_t at = 0; at < into.size(); at += item.size) {
    std::memcpy(into.data() + at, item.bytes.data(), item.size);
  }
}

/// Bytes of the parts that an array is made of.
struct Strides {
  std::size_t planes = 1;  ///< In front of the rows.
  std::size_t rows = 0;
  std::size_t row = 0;

  Strides(const TensorSpec& spec, std::size_t height_at)
      : rows(static_cast<std::size_t>(spec.shape[height_at])),
        row(size_bytes_of(spec.dtype)) {
    for (std::size_t d = 0; d < spec.shape.size(); ++d) {
      const auto n = static_cast<std::size_t>(spec.shape[d]);
      if (d < height_at) planes *= n;
      if (d > height_at) row *= n;
    }
  }
};

/// Writes `from` into the top left of `into`.
void place(const ArrayValue& from, const TensorSpec& to, std::size_t height_at,
           const Item& item, std::span<std::byte> into) {
  const Strides small(from.spec, height_at);
  const Strides large(to, height_at);
  std::span<const std::byte> rest = from.bytes.span();
  for (std::size_t plane = 0; plane < large.planes; ++plane) {
    for (std::size_t y = 0; y < large.rows; ++y) {
      std::span<std::byte> row = into.first(large.row);
      into = into.subspan(large.row);
      if (y < small.rows) {
        std::ranges::copy(rest.first(small.row), row.begin());
        rest = rest.subspan(small.row);
        row = row.subspan(small.row);
      }
      fill(row, item);
    }
  }
}

}  // namespace

std::int64_t padded_side(std::int64_t most, const PadRule& rule,
                         std::size_t axis) {
  if (rule.size[axis] != 0) return rule.size[axis];
  return (most + rule.multiple - 1) / rule.multiple * rule.multiple;
}

Result<TensorSpec> ValueRows::padded_spec(const PadRule& rule,
                                          const KeyOf& key_of) const {
  const std::size_t at = rule.height_at;
  TensorSpec padded = array(0).spec;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const std::vector<std::int64_t>& shape = array(row).spec.shape;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      padded.shape[at + axis] =
          std::max(padded.shape[at + axis], shape[at + axis]);
      if (rule.size[axis] == 0 || shape[at + axis] <= rule.size[axis]) continue;
      return invalid(
          "the picture \"{}\" is {} x {} (height, width), and PadTo has room "
          "for {} x {}; give it more, \"largest\", or put leat.ops.Resize "
          "before it",
          key_of(row), shape[at], shape[at + 1], rule.size[0], rule.size[1]);
    }
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    padded.shape[at + axis] = padded_side(padded.shape[at + axis], rule, axis);
  }
  return padded;
}

Result<void> ValueRows::pad(const PadRule& rule, const KeyOf& key_of,
                            SlotPool& slots, FieldArray& into) const {
  LEAT_TRY(const TensorSpec spec, padded_spec(rule, key_of));
  LEAT_TRY(const Item item, item_of(spec.dtype, rule.fill));
  into.kind = ArrayKind::kDense;
  into.dtype = spec.dtype;
  into.shape = {static_cast<std::int64_t>(rows_.size())};
  into.shape.insert(into.shape.end(), spec.shape.begin(), spec.shape.end());
  into.values = slots.take(rows_.size() * spec.size_bytes());
  std::span<std::byte> rest = into.values->bytes();
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    place(array(row), spec, rule.height_at, item,
          rest.first(spec.size_bytes()));
    rest = rest.subspan(spec.size_bytes());
  }
  return {};
}

}  // namespace leat
