#include "leat/pipeline/program/decoded_record.h"

#include <array>
#include <cstring>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kHeadBytes = 8;
constexpr char kMagic[] = {'L', 'D', 'R', '1'};

}  // namespace

std::uint64_t record_bytes_of(const TensorSpec& spec) {
  return kHeadBytes + 8 * spec.shape.size() + spec.size_bytes();
}

std::span<std::byte> begin_record(const TensorSpec& spec,
                                  std::span<std::byte> record) {
  LEAT_CHECK(spec.shape.size() <= kMostDimensions);
  LEAT_CHECK(record.size() == record_bytes_of(spec));
  std::array<std::byte, kHeadBytes> head{};
  std::memcpy(head.data(), kMagic, sizeof kMagic);
  head[4] = static_cast<std::byte>(spec.dtype);
  head[5] = static_cast<std::byte>(spec.shape.size());
  std::memcpy(record.data(), head.data(), head.size());
  std::size_t at = kHeadBytes;
  for (const std::int64_t n : spec.shape) {
    for (int i = 0; i < 8; ++i) {
      record[at++] =
          static_cast<std::byte>(static_cast<std::uint64_t>(n) >> (8 * i));
    }
  }
  return record.subspan(at);
}

std::optional<RecordArray> read_record(std::span<const std::byte> record) {
  if (record.size() < kHeadBytes ||
      std::memcmp(record.data(), kMagic, sizeof kMagic) != 0) {
    return std::nullopt;
  }
  const auto type = static_cast<std::uint8_t>(record[4]);
  const auto dimensions = static_cast<std::size_t>(record[5]);
  if (type > static_cast<std::uint8_t>(DType::kBfloat16) ||
      dimensions > kMostDimensions || record[6] != std::byte{0} ||
      record[7] != std::byte{0} ||
      record.size() < kHeadBytes + 8 * dimensions) {
    return std::nullopt;
  }
  RecordArray array;
  array.spec.dtype = static_cast<DType>(type);
  array.bytes = record.subspan(kHeadBytes + 8 * dimensions);
  // Divided, not multiplied, so that a huge shape cannot wrap around.
  std::uint64_t left = array.bytes.size() / size_bytes_of(array.spec.dtype);
  if (left * size_bytes_of(array.spec.dtype) != array.bytes.size()) {
    return std::nullopt;
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      n |= static_cast<std::uint64_t>(record[kHeadBytes + 8 * d + i])
           << (8 * i);
    }
    if (n == 0 || left % n != 0) return std::nullopt;
    left /= n;
    array.spec.shape.push_back(static_cast<std::int64_t>(n));
  }
  if (left != 1) return std::nullopt;
  return array;
}

}  // namespace leat
