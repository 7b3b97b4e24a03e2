#include "leat/codec/image/exif.h"

#include <optional>

namespace leat {
namespace {

constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kExifShort = 3;
constexpr std::uint16_t kExifLong = 4;

/// Numbers of a TIFF block in its own byte order; nullopt past its end.
class ExifBytes {
 public:
  ExifBytes(std::span<const std::byte> bytes, bool is_big_endian)
      : bytes_(bytes), is_big_endian_(is_big_endian) {}

  std::optional<std::uint32_t> number(std::uint64_t at, unsigned size) const {
    // Written so that a huge offset cannot wrap around.
    if (at > bytes_.size() || bytes_.size() - at < size) return std::nullopt;
    std::uint32_t value = 0;
    for (unsigned i = 0; i < size; ++i) {
      const unsigned from = is_big_endian_ ? i : size - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at + from]);
    }
    return value;
  }

 private:
  const std::span<const std::byte> bytes_;
  const bool is_big_endian_;
};

/// The value of one directory entry, if it is the orientation and makes sense.
std::optional<std::uint8_t> orientation_of(const ExifBytes& tiff,
                                           std::uint64_t entry) {
  if (tiff.number(entry, 2) != kOrientationTag) return std::nullopt;
  const auto type = tiff.number(entry + 2, 2);
  if (type != kExifShort && type != kExifLong) return std::nullopt;
  const auto value = tiff.number(entry + 8, type == kExifShort ? 2 : 4);
  if (!value || *value < 1 || *value > 8) return std::nullopt;
  return static_cast<std::uint8_t>(*value);
}

}  // namespace

std::uint8_t exif_orientation(std::span<const std::byte> tiff_bytes) {
  if (tiff_bytes.size() < 8) return 1;
  const bool is_big_endian = tiff_bytes[0] == std::byte{'M'};
  const ExifBytes tiff(tiff_bytes, is_big_endian);
  const std::uint32_t mark = is_big_endian ? 0x4d4d : 0x4949;
  if (tiff.number(0, 2) != mark || tiff.number(2, 2) != 42u) return 1;

  const std::uint64_t directory = tiff.number(4, 4).value_or(0);
  const std::uint32_t entries = tiff.number(directory, 2).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {  // At most 65,535 times.
    const std::uint64_t entry = directory + 2 + std::uint64_t{i} * 12;
    if (const auto found = orientation_of(tiff, entry)) return *found;
  }
  return 1;
}

}  // namespace leat
