// The shape and type of the content of a batch slot.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leat {

enum class DType : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kBfloat16,  ///< The upper half of a float32.
};

std::size_t size_bytes_of(DType dtype);

/// NumPy's name: "uint8", "float32", …; "bfloat16", which is ml_dtypes'.
std::string_view to_string(DType dtype);

/// The type with that name; nullopt if there is none.
std::optional<DType> dtype_named(std::string_view name);

/// One sample's array, without the batch dimension.
struct TensorSpec {
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape;

  std::size_t size_bytes() const {
    std::size_t bytes = size_bytes_of(dtype);
    for (const std::int64_t n : shape) bytes *= static_cast<std::size_t>(n);
    return bytes;
  }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace leat
