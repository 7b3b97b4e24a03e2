// A WebP is a RIFF file: "RIFF", the size of the rest, "WEBP", and chunks of a
// type, a length (little-endian) and a content that is padded to even length.
// The pixels are one VP8 or VP8L chunk, before which there may be one of alpha;
// EXIF stands behind them. An animation has a VP8X chunk, whose flags say so,
// and the chunks of each picture in one of type ANMF, behind where it lies.

#include "leat/codec/webp/webp_header.h"

#include <webp/decode.h>

#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/exif.h"

namespace leat {
namespace {

constexpr std::size_t kFileHeaderBytes = 12;
constexpr std::size_t kChunkHeaderBytes = 8;
constexpr std::size_t kFlagsAt = kFileHeaderBytes + kChunkHeaderBytes;
constexpr unsigned char kIsAnimation = 2;
/// Left, top, width - 1, height - 1 and duration, 3 bytes each, and flags.
constexpr std::size_t kFrameHeaderBytes = 16;

std::size_t number_at(std::string_view text, std::size_t at,
                      std::size_t bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
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

/// Calls `see(type, content)` for each chunk that is there whole. Whether all
/// are that the file claims to hold.
template <class See>
bool walk(std::string_view file, const See& see) {
  const std::size_t claimed = number_at(file, 4, 4) + kChunkHeaderBytes;
  if (claimed < kFileHeaderBytes || claimed > file.size()) return false;
  // The bytes behind it are not part of the image.
  std::string_view rest =
      file.substr(kFileHeaderBytes, claimed - kFileHeaderBytes);
  while (rest.size() >= kChunkHeaderBytes) {
    const std::string_view type = rest.substr(0, 4);
    const std::size_t length = number_at(rest, 4, 4);
    rest.remove_prefix(kChunkHeaderBytes);
    if (length > rest.size()) return false;
    see(type, rest.substr(0, length));
    rest.remove_prefix(std::min(length + length % 2, rest.size()));
  }
  return true;
}

bool is_animation(std::string_view file) {
  return file.size() > kFlagsAt && file.substr(kFileHeaderBytes, 4) == "VP8X" &&
         (static_cast<unsigned char>(file[kFlagsAt]) & kIsAnimation) != 0;
}

/// The first ANMF chunk; empty if there is none, or only half of one.
std::string_view first_frame(std::string_view file) {
  std::string_view first;
  (void)walk(file, [&](std::string_view type, std::string_view content) {
    if (first.empty() && type == "ANMF" && content.size() > kFrameHeaderBytes) {
      first = content;
    }
  });
  return first;
}

/// Errors: kCorrupt if there is no first picture as large as the animation.
Result<void> check_first_frame(std::string_view file,
                               const WebPBitstreamFeatures& canvas) {
  const std::string_view frame = first_frame(file);
  if (frame.empty()) {
    return corrupt("WebP is an animation without a picture");
  }
  const std::span<const std::byte> still =
      as_bytes(frame.substr(kFrameHeaderBytes));
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(still.data()),
                      still.size(), &features) != VP8_STATUS_OK) {
    return corrupt("WebP is an animation whose first picture has no header");
  }
  if (number_at(frame, 0, 3) != 0 || number_at(frame, 3, 3) != 0 ||
      features.width != canvas.width || features.height != canvas.height) {
    return corrupt(
        "WebP is an animation whose first picture covers a part of it only; "
        "store the picture that you want of it");
  }
  return {};
}

}  // namespace

Result<ClaimedImage> read_webp_header(std::span<const std::byte> encoded) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(encoded.data()),
                      encoded.size(), &features) != VP8_STATUS_OK) {
    return corrupt("WebP has no header, or half of one");
  }
  ClaimedImage image;
  image.header.width = static_cast<std::uint32_t>(features.width);
  image.header.height = static_cast<std::uint32_t>(features.height);
  // Ours are 3 bytes a pixel; libwebp has 4 of its own for a lossless picture,
  // and one for the transparency of another.
  const std::uint64_t pixels =
      std::uint64_t{image.header.width} * image.header.height;
  constexpr int kLossy = 1;
  image.header.working_bytes = pixels * (features.format == kLossy ? 4 : 7);
  const bool is_whole = walk(
      as_text(encoded), [&](std::string_view type, std::string_view content) {
        if (type == "EXIF") image.header.orientation = orientation_of(content);
      });
  if (!is_whole) {
    image.fault = "WebP is cut short: it claims more bytes than there are";
  } else if (is_animation(as_text(encoded))) {
    LEAT_TRY_VOID(check_first_frame(as_text(encoded), features));
  }
  return image;
}

std::span<const std::byte> still_of_webp(std::span<const std::byte> encoded) {
  if (!is_animation(as_text(encoded))) return encoded;
  const std::string_view frame = first_frame(as_text(encoded));
  if (frame.empty()) return {};
  return as_bytes(frame.substr(kFrameHeaderBytes));
}

}  // namespace leat
