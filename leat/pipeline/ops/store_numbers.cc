#include "leat/pipeline/ops/store_numbers.h"

#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

template <class To, std::integral Whole>
bool fits(Whole number) {
  if constexpr (std::is_floating_point_v<To>) return true;
  if constexpr (std::is_same_v<To, bool>) return number == 0 || number == 1;
  return std::in_range<std::conditional_t<
      std::is_integral_v<To> && !std::is_same_v<To, bool>, To, Whole>>(number);
}

/// The least double that becomes an infinite float: all below it round to the
/// largest float at most.
constexpr double kBeyondFloat = 0x1.ffffffp127;

template <class To>
bool fits(double number) {
  if constexpr (std::is_same_v<To, float>) {
    return !std::isfinite(number) || std::abs(number) < kBeyondFloat;
  }
  if constexpr (std::is_floating_point_v<To>) return true;
  if constexpr (std::is_same_v<To, bool>) return number == 0 || number == 1;
  if constexpr (std::is_integral_v<To>) {
    // Powers of two, so that they are exact; NaN is within none.
    constexpr int kBits = std::numeric_limits<To>::digits;
    const double end = std::ldexp(1.0, kBits);
    const double begin = std::is_signed_v<To> ? -end : 0;
    return number >= begin && number < end && std::trunc(number) == number;
  }
  return false;
}

template <class To, class From>
Result<void> store_as(std::span<const From> numbers, DType dtype,
                      std::byte* into) {
  for (const From number : numbers) {
    if (!fits<To>(number)) {
      return invalid("{} is no {}; choose another dtype=", number,
                     to_string(dtype));
    }
    const To value = static_cast<To>(number);
    std::memcpy(into, &value, sizeof(To));
    into += sizeof(To);
  }
  return {};
}

template <class From>
Result<void> store(std::span<const From> numbers, DType dtype,
                   std::span<std::byte> into) {
  LEAT_CHECK(into.size() == numbers.size() * size_bytes_of(dtype));
  static_assert(sizeof(bool) == 1);
  switch (dtype) {
    case DType::kBool:
      return store_as<bool>(numbers, dtype, into.data());
    case DType::kInt8:
      return store_as<std::int8_t>(numbers, dtype, into.data());
    case DType::kInt16:
      return store_as<std::int16_t>(numbers, dtype, into.data());
    case DType::kInt32:
      return store_as<std::int32_t>(numbers, dtype, into.data());
    case DType::kInt64:
      return store_as<std::int64_t>(numbers, dtype, into.data());
    case DType::kUint8:
      return store_as<std::uint8_t>(numbers, dtype, into.data());
    case DType::kUint16:
      return store_as<std::uint16_t>(numbers, dtype, into.data());
    case DType::kUint32:
      return store_as<std::uint32_t>(numbers, dtype, into.data());
    case DType::kUint64:
      return store_as<std::uint64_t>(numbers, dtype, into.data());
    case DType::kFloat32:
      return store_as<float>(numbers, dtype, into.data());
    case DType::kFloat64:
      return store_as<double>(numbers, dtype, into.data());
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kComplex64:
    case DType::kComplex128:
      break;
  }
  return Error(ErrorCode::kInternal, "numbers are not stored as such a type");
}

}  // namespace

Result<void> store_numbers(std::span<const std::int64_t> numbers, DType dtype,
                           std::span<std::byte> into) {
  return store(numbers, dtype, into);
}

Result<void> store_numbers(std::span<const std::uint64_t> numbers, DType dtype,
                           std::span<std::byte> into) {
  return store(numbers, dtype, into);
}

Result<void> store_numbers(std::span<const double> numbers, DType dtype,
                           std::span<std::byte> into) {
  return store(numbers, dtype, into);
}

}  // namespace leat
