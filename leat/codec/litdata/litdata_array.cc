#include "leat/codec/litdata/litdata_array.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace leat {
namespace {

struct Items {
  NpyKind kind;
  std::uint32_t item_bytes;  ///< 0: no numbers.
};

constexpr Items kNone = {NpyKind::kFloat, 0};
constexpr Items kFloat32 = {NpyKind::kFloat, 4};
constexpr Items kFloat64 = {NpyKind::kFloat, 8};
constexpr Items kComplex64 = {NpyKind::kComplex, 8};
constexpr Items kComplex128 = {NpyKind::kComplex, 16};
constexpr Items kFloat16 = {NpyKind::kFloat, 2};
constexpr Items kInt16 = {NpyKind::kSigned, 2};
constexpr Items kInt32 = {NpyKind::kSigned, 4};
constexpr Items kInt64 = {NpyKind::kSigned, 8};

/// By code. PyTorch has two names for some; bfloat16 is 10, and not written.
constexpr std::array<Items, 21> kOfTorch = {{
    kFloat32,
    kFloat32,
    kFloat64,
    kFloat64,
    kComplex64,
    kComplex64,
    kComplex128,
    kComplex128,
    kFloat16,
    kFloat16,
    kNone,
    {NpyKind::kUnsigned, 1},
    {NpyKind::kSigned, 1},
    kInt16,
    kInt16,
    kInt32,
    kInt32,
    kInt64,
    kInt64,
    {NpyKind::kBool, 1},
    {NpyKind::kUnsigned, 2},
}};

/// By code; behind them are objects, bytes, texts and structures.
constexpr std::array<Items, 14> kOfNumpy = {{
    {NpyKind::kSigned, 1},
    kInt16,
    kInt32,
    kInt64,
    {NpyKind::kUnsigned, 1},
    {NpyKind::kUnsigned, 2},
    {NpyKind::kUnsigned, 4},
    {NpyKind::kUnsigned, 8},
    kFloat16,
    kFloat32,
    kFloat64,
    kComplex64,
    kComplex128,
    {NpyKind::kBool, 1},
}};

/// All versions of NumPy accept this many.
constexpr std::uint32_t kMostLitdataDimensions = 32;

Error corrupt_litdata(std::string why) {
  return Error(ErrorCode::kCorrupt, "LitData array: " + std::move(why));
}

Error litdata_cut_short() {
  return corrupt_litdata("cut short: the head is not whole");
}

enum class Order : std::uint8_t { kBig, kLittle };

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at,
                      Order order) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t from = order == Order::kBig ? at + i : at + 3 - i;
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[from]);
  }
  return value;
}

Result<Items> items_of(std::uint32_t code, Order order) {
  const auto types = order == Order::kBig ? std::span<const Items>(kOfTorch)
                                          : std::span<const Items>(kOfNumpy);
  if (code < types.size() && types[code].item_bytes != 0) return types[code];
  return corrupt_litdata(
      fmt::format("{} is the code of no type of numbers of {}", code,
                  order == Order::kBig ? "a tensor" : "an array of NumPy's"));
}

}  // namespace

Result<NpyHeader> read_litdata_array(std::span<const std::byte> encoded) {
  constexpr std::size_t kHead = 8;
  if (encoded.size() < kHead) return litdata_cut_short();
  const Order order = word_at(encoded, 4, Order::kBig) <= kMostLitdataDimensions
                          ? Order::kBig
                          : Order::kLittle;
  const std::uint32_t dimensions = word_at(encoded, 4, order);
  if (dimensions > kMostLitdataDimensions) {
    return corrupt_litdata(fmt::format("{} dimensions; 0 to {} are read",
                                       dimensions, kMostLitdataDimensions));
  }
  LEAT_TRY(const Items items, items_of(word_at(encoded, 0, order), order));
  NpyHeader header{.kind = items.kind,
                   .item_bytes = items.item_bytes,
                   .shape = {},
                   .data_offset = kHead + std::size_t{4} * dimensions};
  if (encoded.size() < header.data_offset) return litdata_cut_short();
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    header.shape.push_back(word_at(encoded, kHead + std::size_t{4} * i, order));
  }
  LEAT_TRY_VOID(check_items_follow(header, encoded.size(), "LitData array"));
  return header;
}

}  // namespace leat
