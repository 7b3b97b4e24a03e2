// A TIFF is a byte order, the number 42 and the place of a directory: a count,
// entries of twelve bytes (tag, type, count, and a value or where the values
// lie), and the place of the next directory, 0 behind the last.

#include "leat/codec/tiff/tiff_header.h"

#include <fmt/format.h>

#include <optional>

#include "leat/base/errors.h"

namespace leat {
namespace {

constexpr std::uint32_t kClassic = 42;
constexpr std::size_t kEntryBytes = 12;
constexpr std::uint32_t kUncompressed = 1;

/// Numbers in the file's order; 0 beyond its end, and then `is_short`.
class TiffBytes {
 public:
  explicit TiffBytes(std::span<const std::byte> bytes)
      : bytes_(bytes), is_big_(!bytes.empty() && bytes[0] == std::byte{'M'}) {}

  std::uint32_t u16(std::uint64_t at) { return number(at, 2); }
  std::uint32_t u32(std::uint64_t at) { return number(at, 4); }
  bool is_short() const { return is_short_; }

 private:
  std::uint32_t number(std::uint64_t at, std::uint64_t count) {
    if (at + count > bytes_.size()) {
      is_short_ = true;
      return 0;
    }
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t place = is_big_ ? at + i : at + count - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[place]);
    }
    return value;
  }

  const std::span<const std::byte> bytes_;
  const bool is_big_;
  bool is_short_ = false;
};

/// The numbers of a directory, or those that hold where it has none.
struct Directory {
  std::uint32_t subfile = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t bits = 1;
  std::uint32_t compression = kUncompressed;
  std::uint32_t photometric = 0;
  std::uint32_t orientation = 1;
  std::uint32_t samples = 1;
  std::uint32_t planes = 1;
  std::uint32_t sample_format = 1;
  std::uint32_t next = 0;

  std::uint32_t* field_of(std::uint32_t tag) {
    switch (tag) {
      case 254:
        return &subfile;
      case 256:
        return &width;
      case 257:
        return &height;
      case 258:
        return &bits;
      case 259:
        return &compression;
      case 262:
        return &photometric;
      case 274:
        return &orientation;
      case 277:
        return &samples;
      case 284:
        return &planes;
      case 339:
        return &sample_format;
      default:
        return nullptr;
    }
  }

  bool is_of_another() const {  // A smaller copy, or a mask.
    return (subfile & (1u | 4u)) != 0;
  }
};

/// The first value of an entry.
std::uint32_t value_at(TiffBytes& bytes, std::uint64_t entry) {
  constexpr std::uint32_t kShort = 3;
  const bool is_short_number = bytes.u16(entry + 2) == kShort;
  const std::uint32_t count = bytes.u32(entry + 4);
  const bool is_inside = count <= (is_short_number ? 2u : 1u);
  const std::uint64_t at = is_inside ? entry + 8 : bytes.u32(entry + 8);
  return is_short_number ? bytes.u16(at) : bytes.u32(at);
}

Directory directory_at(TiffBytes& bytes, std::uint32_t at) {
  Directory directory;
  const std::uint32_t count = bytes.u16(at);
  std::uint64_t entry = std::uint64_t{at} + 2;
  for (std::uint32_t i = 0; i < count && !bytes.is_short(); ++i) {
    std::uint32_t* field = directory.field_of(bytes.u16(entry));
    if (field != nullptr) *field = value_at(bytes, entry);
    entry += kEntryBytes;
  }
  directory.next = bytes.u32(entry);
  return directory;
}

/// Uncompressed, LZW, deflate by its two numbers, PackBits.
bool is_decoded(std::uint32_t compression) {
  return compression == kUncompressed || compression == 5 || compression == 8 ||
         compression == 32946 || compression == 32773;
}

std::string fault_of(const Directory& first, std::uint64_t encoded_bytes) {
  const bool is_grey = first.samples == 1 && first.photometric <= 1;
  const bool is_colour =
      (first.samples == 3 || first.samples == 4) && first.photometric == 2;
  const bool has_bytes = first.bits == 8 || first.bits == 16;
  if (first.sample_format != 1 || !has_bytes || !(is_grey || is_colour) ||
      (first.samples > 1 && first.planes != 1)) {
    return fmt::format(
        "TIFF of {} channel(s) of {} bits, photometric {}, sample format {}{}: "
        "grey and RGB of 8 or 16 bits without a sign can be decoded; take the "
        "field as bytes and read others in a function",
        first.samples, first.bits, first.photometric, first.sample_format,
        first.planes == 1 ? "" : ", in planes");
  }
  if (!is_decoded(first.compression)) {
    return fmt::format(
        "TIFF has compression {}: none, LZW, deflate and PackBits (1, 5, 8 and "
        "32773) can be decoded; take the field as bytes and read others in a "
        "function",
        first.compression);
  }
  const std::uint64_t pixel_bytes = std::uint64_t{first.width} * first.height *
                                    first.samples * (first.bits / 8);
  const std::uint64_t growth =
      first.compression == kUncompressed ? 1 : kMostTiffGrowth;
  if (pixel_bytes > encoded_bytes * growth) {
    return "TIFF claims more pixels than its bytes can hold";
  }
  return "";
}

}  // namespace

Result<ClaimedImage> read_tiff_header(std::span<const std::byte> encoded) {
  TiffBytes bytes(encoded);
  if (bytes.u16(2) != kClassic) {
    return corrupt("this is a BigTIFF, and TIFFs of less than 4 GiB are read");
  }
  const Directory first = directory_at(bytes, bytes.u32(4));
  if (bytes.is_short() || first.width == 0 || first.height == 0) {
    return corrupt("TIFF has no directory, or half of one");
  }
  ClaimedImage image;
  image.header.width = first.width;
  image.header.height = first.height;
  image.header.depth = first.bits == 16 ? 16 : 8;
  image.header.is_grey = first.samples == 1;
  image.header.may_hold_labels = image.header.is_grey;
  if (first.orientation >= 1 && first.orientation <= 8) {
    image.header.orientation = static_cast<std::uint8_t>(first.orientation);
  }
  image.fault = fault_of(first, encoded.size());
  if (image.fault.empty() && first.next != 0 &&
      !directory_at(bytes, first.next).is_of_another()) {
    image.fault =
        bytes.is_short()
            ? "TIFF is cut short: a directory is missing"
            : "TIFF holds several pictures, and an image is one: split the "
              "file, or take the field as bytes and read it in a function";
  }
  return image;
}

}  // namespace leat
