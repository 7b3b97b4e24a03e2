// Builds TFRecord files and messages tf.train.Example in memory, good and bad,
// for tests.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/codec/tfrecord/tfrecord_scanner.h"
#include "leat/codec/tfrecord/wire.h"

namespace leat::testing {

template <class Number>
std::string little_endian(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>((value & 0x7f) | 0x80);
  }
  return bytes + static_cast<char>(value);
}

/// A field of bytes, a text or a message.
inline std::string wire_field(std::uint64_t number, std::string_view value) {
  return varint(wire_tag(number, kWireBytes)) + varint(value.size()) +
         std::string(value);
}

inline std::string bytes_feature(
    std::initializer_list<std::string_view> values) {
  std::string list;
  for (const std::string_view value : values) list += wire_field(1, value);
  return wire_field(1, list);
}

inline std::string float_feature(const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += little_endian(value);
  return wire_field(2, values.empty() ? "" : wire_field(1, packed));
}

inline std::string int64_feature(const std::vector<std::int64_t>& values) {
  std::string packed;
  for (const std::int64_t value : values) {
    packed += varint(static_cast<std::uint64_t>(value));
  }
  return wire_field(3, values.empty() ? "" : wire_field(1, packed));
}

/// Builds an Example of features, each a message tf.train.Feature.
class ExampleBuilder {
 public:
  ExampleBuilder& add(std::string_view name, std::string_view feature) {
    features_ += wire_field(1, wire_field(1, name) + wire_field(2, feature));
    return *this;
  }
  std::string finish() const { return wire_field(1, features_); }

 private:
  std::string features_;
};

/// One record of a file.
inline std::string tfrecord(std::string_view payload) {
  const std::string length =
      little_endian(static_cast<std::uint64_t>(payload.size()));
  return length + little_endian(tfrecord_crc(as_bytes(length))) +
         std::string(payload) + little_endian(tfrecord_crc(as_bytes(payload)));
}

}  // namespace leat::testing
