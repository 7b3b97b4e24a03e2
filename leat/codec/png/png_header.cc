// A PNG is eight bytes of signature and a list of chunks: length, type,
// content, CRC. IHDR is the first and has the size; the pixels are one deflate
// stream spread over the IDATs; IEND is the last.

#include "leat/codec/png/png_header.h"

#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/exif.h"

namespace leat {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkFrameBytes = 12;   // Length, type, CRC.
constexpr std::uint32_t kMaxSide = 1'000'000;  // As libpng's own default.
// The most that one byte of deflate can grow to, and a little more.
constexpr std::uint64_t kMostPngGrowth = 1040;

std::uint32_t u32_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(text[at + i]);
  }
  return value;
}

struct Chunk {
  std::string_view type;
  std::string_view content;
};

/// Takes the first chunk off `rest`; false if it is not whole.
bool take_chunk(std::string_view& rest, Chunk& chunk) {
  if (rest.size() < kChunkFrameBytes) return false;
  const std::size_t length = u32_at(rest, 0);
  if (rest.size() - kChunkFrameBytes < length) return false;
  chunk = {rest.substr(4, 4), rest.substr(8, length)};
  rest.remove_prefix(kChunkFrameBytes + length);
  return true;
}

std::uint64_t bits_per_pixel(std::uint8_t depth, std::uint8_t colour) {
  switch (colour) {
    case 2:
      return 3u * depth;
    case 4:
      return 2u * depth;
    case 6:
      return 4u * depth;
    default:
      return depth;
  }
}

}  // namespace

Result<ClaimedImage> read_png_header(std::span<const std::byte> encoded) {
  std::string_view rest = as_text(encoded);
  rest.remove_prefix(kSignatureBytes);
  Chunk chunk;
  if (!take_chunk(rest, chunk) || chunk.type != "IHDR" ||
      chunk.content.size() != 13) {
    return corrupt("PNG has no header, or half of one");
  }
  ClaimedImage image;
  image.header.may_hold_labels = true;
  image.header.width = u32_at(chunk.content, 0);
  image.header.height = u32_at(chunk.content, 4);
  const auto depth = static_cast<std::uint8_t>(chunk.content[8]);
  const auto colour = static_cast<std::uint8_t>(chunk.content[9]);
  const std::uint64_t bits = bits_per_pixel(depth, colour);
  image.header.depth = depth == 16 ? 16 : 8;
  image.header.is_grey = colour == 0 || colour == 4;
  image.header.has_palette = colour == 3;
  if (chunk.content[12] != 0) {
    image.header.working_bytes = std::uint64_t{image.header.width} *
                                 image.header.height * 3 *
                                 (depth == 16 ? 2 : 1);
  }
  if (image.header.width == 0 || image.header.height == 0) {
    return corrupt("PNG has no size");
  }

  std::uint64_t deflated_bytes = 0;
  do {
    if (!take_chunk(rest, chunk)) {
      image.fault = "PNG is cut short: its end chunk is missing";
      return image;
    }
    if (chunk.type == "IDAT") deflated_bytes += chunk.content.size();
    if (chunk.type == "eXIf") {
      image.header.orientation = exif_orientation(as_bytes(chunk.content));
    }
  } while (chunk.type != "IEND");

  if (image.header.width > kMaxSide || image.header.height > kMaxSide) {
    image.fault = "PNG claims a side of more than 1,000,000 pixels";
  } else if (image.header.height * (image.header.width * bits / 8) >
             deflated_bytes * kMostPngGrowth) {
    image.fault = "PNG claims more pixels than its bytes can hold";
  }
  return image;
}

}  // namespace leat
