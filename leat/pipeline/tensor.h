// The shape and type of what a batch slot holds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace leat {

enum class DType : std::uint8_t { kUint8, kInt32, kInt64, kFloat32, kFloat64 };

constexpr std::size_t size_bytes_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 1;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

/// NumPy's name: "uint8", "float32", …
std::string_view to_string(DType dtype);

/// One sample's array: without the batch dimension.
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
