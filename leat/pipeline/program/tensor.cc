#include "leat/pipeline/program/tensor.h"

#include <array>

namespace leat {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::size_t size_bytes;
};

// In the order of the enumerators.
constexpr std::array kTypes = {
    DTypeInfo{"bool", 1},      DTypeInfo{"int8", 1},
    DTypeInfo{"int16", 2},     DTypeInfo{"int32", 4},
    DTypeInfo{"int64", 8},     DTypeInfo{"uint8", 1},
    DTypeInfo{"uint16", 2},    DTypeInfo{"uint32", 4},
    DTypeInfo{"uint64", 8},    DTypeInfo{"float16", 2},
    DTypeInfo{"float32", 4},   DTypeInfo{"float64", 8},
    DTypeInfo{"complex64", 8}, DTypeInfo{"complex128", 16},
    DTypeInfo{"bfloat16", 2}};
static_assert(kTypes.size() == static_cast<std::size_t>(DType::kBfloat16) + 1);

}  // namespace

std::size_t size_bytes_of(DType dtype) {
  return kTypes[static_cast<std::size_t>(dtype)].size_bytes;
}

std::string_view to_string(DType dtype) {
  return kTypes[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace leat
