#include "leat/cache/memcached/piece.h"

#include <fmt/format.h>

#include <concepts>

#include "leat/base/check.h"

namespace leat {
namespace {

constexpr std::uint32_t kMagic = 0x3156504c;  // "LPV1"
constexpr std::size_t kCheckedBytes = 20;

template <std::unsigned_integral T>
void put(std::span<std::byte> into, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    into[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

std::uint32_t checksum(const Hash128& key, const PieceHeader& header,
                       std::span<const std::byte> payload) {
  std::array<std::byte, 16> name{};
  put(name, 0, key.high);
  put(name, 8, key.low);
  const std::uint32_t before =
      crc32c(std::span(header).first(kCheckedBytes), crc32c(name));
  return crc32c(payload, before);
}

}  // namespace

std::size_t ValueSplit::bytes_of(std::uint32_t piece) const {
  return piece + 1 < pieces
             ? piece_bytes
             : static_cast<std::size_t>(value_bytes - offset_of(piece));
}

ValueSplit split_value(std::uint64_t value_bytes) {
  LEAT_CHECK(value_bytes > 0 && value_bytes <= kMostPeerValueBytes);
  const std::uint64_t pieces =
      (value_bytes + kMostPieceBytes - 1) / kMostPieceBytes;
  return {.value_bytes = value_bytes,
          .pieces = static_cast<std::uint32_t>(pieces),
          .piece_bytes =
              static_cast<std::size_t>((value_bytes + pieces - 1) / pieces)};
}

PieceHeader make_piece_header(const Hash128& key, const ValueSplit& split,
                              std::uint32_t piece,
                              std::span<const std::byte> payload) {
  PieceHeader header{};
  put(header, 0, kMagic);
  put(header, 4, piece);
  put(header, 8, split.pieces);
  put(header, 12, split.value_bytes);
  put(header, kCheckedBytes, checksum(key, header, payload));
  return header;
}

bool is_piece(const PieceHeader& header, const Hash128& key,
              const ValueSplit& split, std::uint32_t piece,
              std::span<const std::byte> payload) {
  // The exact piece that a writer would have made of the value.
  return payload.size() == split.bytes_of(piece) &&
         header == make_piece_header(key, split, piece, payload);
}

std::string piece_name(const Hash128& key, std::uint32_t piece) {
  return fmt::format("leat:{}:{}", key.hex(), piece);
}

}  // namespace leat
