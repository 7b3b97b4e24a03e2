// A WebP is a RIFF file: "RIFF", the size of the rest, "WEBP", and chunks of a
// type, a length (little-endian) and a content that is padded to even length.
// The pixels are one VP8 or VP8L chunk; EXIF stands behind them.

#include "leat/codec/webp/webp_header.h"

#include <webp/decode.h>

#include <string_view>

#include "leat/base/buffer.h"
#include "leat/codec/image/exif.h"

namespace leat {
namespace {

constexpr std::size_t kFileHeaderBytes = 12;
constexpr std::size_t kChunkHeaderBytes = 8;

std::size_t u32_at(std::string_view text, std::size_t at) {
  std::size_t value = 0;
  for (std::size_t i = 4; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(text[at + i]);
  }
  return value;
}

std::uint8_t orientation_of(std::string_view exif) {
  // JPEG's mark of EXIF has no place here, and some write it all the same.
  constexpr std::string_view kMark("Exif\0\0", 6);
  if (exif.starts_with(kMark)) exif.remove_prefix(kMark.size());
  return exif_orientation(as_bytes(exif));
}

/// Whether all that the file claims to hold is there; finds the orientation.
bool walk(std::string_view file, ImageHeader& header) {
  const std::size_t claimed = u32_at(file, 4) + kChunkHeaderBytes;
  if (claimed < kFileHeaderBytes || claimed > file.size()) return false;
  // What lies behind is no part of the image.
  std::string_view rest =
      file.substr(kFileHeaderBytes, claimed - kFileHeaderBytes);
  while (rest.size() >= kChunkHeaderBytes) {
    const std::string_view type = rest.substr(0, 4);
    const std::size_t length = u32_at(rest, 4);
    rest.remove_prefix(kChunkHeaderBytes);
    if (length > rest.size()) return false;
    if (type == "EXIF")
      header.orientation = orientation_of(rest.substr(0, length));
    rest.remove_prefix(std::min(length + length % 2, rest.size()));
  }
  return true;
}

}  // namespace

Result<ClaimedImage> read_webp_header(std::span<const std::byte> encoded) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(encoded.data()),
                      encoded.size(), &features) != VP8_STATUS_OK) {
    return Error(ErrorCode::kCorrupt, "WebP has no header, or half of one");
  }
  if (features.has_animation != 0) {
    return Error(ErrorCode::kCorrupt,
                 "WebP is an animation; store the picture that you want of it");
  }
  ClaimedImage image;
  image.header.format = ImageFormat::kWebp;
  image.header.width = static_cast<std::uint32_t>(features.width);
  image.header.height = static_cast<std::uint32_t>(features.height);
  if (!walk(as_text(encoded), image.header)) {
    image.fault = "WebP is cut short: it claims more bytes than there are";
  }
  return image;
}

}  // namespace leat
