#include "leat/codec/tfrecord/feature_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/codec/tfrecord/example_walk.h"
#include "leat/codec/tfrecord/wire.h"

namespace leat {
namespace {

static_assert(std::endian::native == std::endian::little,
              "floats are little-endian, and are copied");

Error no_numbers(std::string why) {
  return corrupt("no tf.train.Feature of numbers: " + std::move(why));
}

/// Takes a length, and as many bytes as it says, off the front; nullopt if they
/// are not there.
std::optional<std::span<const std::byte>> take_value(
    std::span<const std::byte>& bytes) {
  const auto length = take_varint(bytes);
  if (!length || *length > bytes.size()) return std::nullopt;
  const auto value = bytes.first(*length);
  bytes = bytes.subspan(*length);
  return value;
}

/// Takes the numbers of a field of that type; false: they are not there whole.
bool take_numbers(std::uint64_t type, std::span<const std::byte>& bytes,
                  std::vector<std::int64_t>& numbers) {
  if (type == kWireVarint) {
    const auto number = take_varint(bytes);
    if (number) numbers.push_back(static_cast<std::int64_t>(*number));
    return number.has_value();
  }
  if (type != kWireBytes) return false;
  auto packed = take_value(bytes);
  if (!packed) return false;
  if (numbers.empty()) {  // A list is one field, as a rule.
    numbers.reserve(static_cast<std::size_t>(
        std::ranges::count_if(*packed, [](std::byte byte) {
          return byte < std::byte{0x80};  // The last of a number.
        })));
  }
  while (!packed->empty()) {
    const auto number = take_varint(*packed);
    if (!number) return false;
    numbers.push_back(static_cast<std::int64_t>(*number));
  }
  return true;
}

bool take_numbers(std::uint64_t type, std::span<const std::byte>& bytes,
                  std::vector<float>& numbers) {
  std::optional<std::span<const std::byte>> packed;
  if (type == kWireFixed32 && bytes.size() >= sizeof(float)) {
    packed = bytes.first(sizeof(float));
    bytes = bytes.subspan(sizeof(float));
  } else if (type == kWireBytes) {
    packed = take_value(bytes);
  }
  if (!packed || packed->size() % sizeof(float) != 0) return false;
  if (packed->empty()) return true;
  const std::size_t before = numbers.size();
  numbers.resize(before + packed->size() / sizeof(float));
  std::memcpy(&numbers[before], packed->data(), packed->size());
  return true;
}

template <class Number>
Result<FeatureNumbers> numbers_in(std::span<const std::byte> list) {
  std::vector<Number> numbers;
  while (!list.empty()) {
    const auto tag = take_varint(list);
    if (!tag || *tag >> 3 != 1 || !take_numbers(*tag & 7, list, numbers)) {
      return no_numbers("its list is damaged");
    }
  }
  return FeatureNumbers(std::move(numbers));
}

}  // namespace

Result<FeatureNumbers> read_feature_numbers(
    std::span<const std::byte> feature) {
  const auto tag = take_varint(feature);
  const auto list = tag ? take_value(feature) : std::nullopt;
  if (!list || !feature.empty()) {
    return no_numbers("it is no list, or not one alone");
  }
  const auto is_of = [&](FeatureKind kind) {
    return *tag == wire_tag(static_cast<std::uint64_t>(kind), kWireBytes);
  };
  if (is_of(FeatureKind::kInt64)) return numbers_in<std::int64_t>(*list);
  if (is_of(FeatureKind::kFloat)) return numbers_in<float>(*list);
  return no_numbers(is_of(FeatureKind::kBytes) ? "it is a bytes_list"
                                               : "it has no list of numbers");
}

}  // namespace leat
