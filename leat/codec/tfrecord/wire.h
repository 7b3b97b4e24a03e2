// The wire format of protocol buffers, as far as tf.train.Example needs it. A
// message is a row of fields; each is a tag (its number and its wire type, in
// one varint) and a value:
//
//     wire type  value
//     0          a varint: 7 bits a byte, the lowest first; the highest bit of
//                a byte says that another follows
//     2          a length, as a varint, and that many bytes: a text, a message,
//                numbers packed one after the other
//     5          4 bytes, little-endian
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat {

inline constexpr std::size_t kMostVarintBytes = 10;

/// The types of a field's value that are read here.
inline constexpr std::uint64_t kWireVarint = 0;
inline constexpr std::uint64_t kWireBytes = 2;
inline constexpr std::uint64_t kWireFixed32 = 5;

/// The tag of the field with this number and type.
constexpr std::uint64_t wire_tag(std::uint64_t number, std::uint64_t type) {
  return number << 3 | type;
}

/// Takes a varint off the front of `bytes`. Nullopt: it is not there whole, or
/// is longer than 64 bits, as it is if kMostVarintBytes are there.
inline std::optional<std::uint64_t> take_varint(
    std::span<const std::byte>& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kMostVarintBytes; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    if (i == kMostVarintBytes - 1 && byte > 1) break;  // The 64th bit is last.
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes = bytes.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace leat
