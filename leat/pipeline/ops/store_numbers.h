// Numbers that were read one by one, as an array of a type that was asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "leat/base/result.h"
#include "leat/pipeline/program/tensor.h"

namespace leat {

/// Writes `numbers` as `dtype`, which is neither float16, bfloat16 nor complex.
///
/// REQUIRES: into.size() == numbers.size() * size_bytes_of(dtype).
/// Errors:
///   kInvalidArgument  one of them does not fit: a whole number must stay what
///                     it is, a finite one finite, and bool takes 0 and 1; only
///                     floats round
Result<void> store_numbers(std::span<const std::int64_t> numbers, DType dtype,
                           std::span<std::byte> into);
Result<void> store_numbers(std::span<const std::uint64_t> numbers, DType dtype,
                           std::span<std::byte> into);
Result<void> store_numbers(std::span<const double> numbers, DType dtype,
                           std::span<std::byte> into);

}  // namespace leat
