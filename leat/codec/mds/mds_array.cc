#include "leat/codec/mds/mds_array.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace leat {
namespace {

struct MdsType {
  std::uint8_t code;
  std::string_view name;
  MdsItems items;
};

constexpr MdsType kTypes[] = {
    {8, "uint8", {NpyKind::kUnsigned, 1}},
    {9, "int8", {NpyKind::kSigned, 1}},
    {16, "uint16", {NpyKind::kUnsigned, 2}},
    {17, "int16", {NpyKind::kSigned, 2}},
    {18, "float16", {NpyKind::kFloat, 2}},
    {32, "uint32", {NpyKind::kUnsigned, 4}},
    {33, "int32", {NpyKind::kSigned, 4}},
    {34, "float32", {NpyKind::kFloat, 4}},
    {64, "uint64", {NpyKind::kUnsigned, 8}},
    {65, "int64", {NpyKind::kSigned, 8}},
    {66, "float64", {NpyKind::kFloat, 8}},
};

/// All versions of NumPy accept this many.
constexpr std::size_t kMostMdsDimensions = 32;

Error corrupt_mds(std::string why) {
  return Error(ErrorCode::kCorrupt, "MDS array: " + std::move(why));
}

Error mds_cut_short() {
  return corrupt_mds("cut short: the head is not whole");
}

Result<MdsItems> items_of(std::uint8_t code) {
  for (const MdsType& type : kTypes) {
    if (type.code == code) return type.items;
  }
  return corrupt_mds(
      fmt::format("{} is the code of no type; where all arrays of a column "
                  "have one type, say it: leat.ops.LoadMdsArray(dtype=...)",
                  code));
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
  }
  return value;
}

}  // namespace

std::optional<MdsItems> mds_items_named(std::string_view name) {
  for (const MdsType& type : kTypes) {
    if (type.name == name) return type.items;
  }
  return std::nullopt;
}

Result<NpyHeader> read_mds_array(std::span<const std::byte> encoded,
                                 const std::optional<MdsItems>& items) {
  std::size_t at = 0;
  MdsItems its = items.value_or(MdsItems{});
  if (!items) {
    if (encoded.empty()) return mds_cut_short();
    LEAT_TRY(its, items_of(std::to_integer<std::uint8_t>(encoded[at++])));
  }
  if (at == encoded.size()) return mds_cut_short();
  const auto head = std::to_integer<std::uint8_t>(encoded[at++]);
  const std::size_t dimensions = head >> 2;
  const std::size_t side_bytes = std::size_t{1} << (head & 3);
  if (dimensions == 0 || dimensions > kMostMdsDimensions) {
    return corrupt_mds(fmt::format("{} dimensions; 1 to {} are read",
                                   dimensions, kMostMdsDimensions));
  }
  if (encoded.size() - at < dimensions * side_bytes) return mds_cut_short();
  NpyHeader header{.kind = its.kind,
                   .item_bytes = its.item_bytes,
                   .shape = {},
                   .data_offset = 0};
  for (std::size_t i = 0; i < dimensions; ++i, at += side_bytes) {
    const std::uint64_t side = little_endian(encoded.subspan(at, side_bytes));
    // No larger one fits, and none is negative.
    if (side == 0 || side > encoded.size()) {
      return corrupt_mds(
          fmt::format("side {} is {}, in {} bytes", i, side, encoded.size()));
    }
    header.shape.push_back(static_cast<std::int64_t>(side));
  }
  header.data_offset = at;
  LEAT_TRY_VOID(check_items_follow(header, encoded.size(), "MDS array"));
  return header;
}

}  // namespace leat
