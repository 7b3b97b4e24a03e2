// A JPEG is a list of segments: FF, a marker, a length of two bytes that counts
// itself, and content. The first SOS begins the pixels; an EOI ends them.
// Within the pixels FF is always followed by 00 or a restart marker, so an EOI
// behind the first SOS is the real one (a thumbnail's stands before it).

#include "leat/codec/jpeg/jpeg_header.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/exif.h"

namespace leat {
namespace {

constexpr std::uint8_t kStartOfImage = 0xd8;
constexpr std::uint8_t kStartOfScan = 0xda;
constexpr std::uint8_t kApp1 = 0xe1;
constexpr std::string_view kEndOfImage = "\xff\xd9";
constexpr std::string_view kExif{"Exif\0\0", 6};

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

std::uint32_t u16_at(std::string_view text, std::size_t at) {
  return std::uint32_t{byte_at(text, at)} << 8 | byte_at(text, at + 1);
}

bool stands_alone(std::uint8_t marker) {
  return marker == kStartOfImage || marker == 0x01 ||
         (marker >= 0xd0 && marker <= 0xd7);
}

/// SOF0 to SOF15 without DHT, JPG and DAC, which share the range.
bool is_frame(std::uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
         marker != 0xcc;
}

/// Arithmetic coding can say "nothing here" in less than a bit.
bool is_arithmetic(std::uint8_t frame) { return frame >= 0xc9; }

/// The bytes of a frame's coefficients: 2 bytes each, in 8 x 8 blocks, for
/// whole units of the picture. libjpeg keeps them in memory if the picture
/// comes in several scans.
std::uint64_t coefficient_bytes(std::string_view frame) {
  constexpr std::size_t kComponentsAt = 6;
  const std::size_t components = std::min<std::size_t>(
      byte_at(frame, 5), (frame.size() - kComponentsAt) / 3);
  const auto factors = [&](std::size_t i) {
    const std::uint8_t both = byte_at(frame, kComponentsAt + 3 * i + 1);
    return std::pair<std::uint64_t, std::uint64_t>(both >> 4, both & 15);
  };
  std::uint64_t across = 1;
  std::uint64_t down = 1;
  for (std::size_t i = 0; i < components; ++i) {
    across = std::max(across, factors(i).first);
    down = std::max(down, factors(i).second);
  }
  const auto units = [](std::uint64_t pixels, std::uint64_t factor) {
    return (pixels + 8 * factor - 1) / (8 * factor);
  };
  const std::uint64_t in_all =
      units(u16_at(frame, 3), across) * units(u16_at(frame, 1), down);
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < components; ++i) {
    blocks += in_all * factors(i).first * factors(i).second;
  }
  return blocks * 64 * 2;
}

bool is_progressive(std::uint8_t frame) {
  return frame == 0xc2 || frame == 0xc6 || frame == 0xca || frame == 0xce;
}

Error jpeg_cut_short() {
  return corrupt("JPEG is cut short: it ends before its pixels begin");
}

/// Describes the fault in the part that holds the pixels; empty if there is
/// none.
std::string fault_of(const ImageHeader& header, std::uint8_t frame,
                     std::string_view pixels) {
  if (pixels.rfind(kEndOfImage) == std::string_view::npos) {
    return "JPEG is cut short: its end marker is missing";
  }
  // Every block of 8 x 8 pixels takes at least a bit.
  const std::uint64_t area = std::uint64_t{header.width} * header.height;
  if (!is_arithmetic(frame) && area / 512 > pixels.size()) {
    return "JPEG claims more pixels than its bytes can hold";
  }
  return {};
}

}  // namespace

Result<ClaimedImage> read_jpeg_header(std::span<const std::byte> encoded) {
  const std::string_view text = as_text(encoded);
  ClaimedImage image;
  image.header.most_shrink_log2 = 3;
  std::uint8_t frame = 0;
  std::string_view frame_content;
  std::size_t at = 2;
  for (;;) {
    // Stray bytes between segments are passed over, as libjpeg does.
    at = text.find('\xff', at);
    if (at == std::string_view::npos) return jpeg_cut_short();
    at = text.find_first_not_of('\xff', at);
    if (at == std::string_view::npos) return jpeg_cut_short();
    const std::uint8_t marker = byte_at(text, at++);
    if (marker == 0 || stands_alone(marker)) continue;

    if (text.size() - at < 2) return jpeg_cut_short();
    const std::size_t length = u16_at(text, at);
    if (length < 2 || text.size() - at < length) return jpeg_cut_short();
    const std::string_view content = text.substr(at + 2, length - 2);
    if (marker == kStartOfScan) {
      const bool has_more = frame_content.size() > 5 && !content.empty() &&
                            content[0] != frame_content[5];
      if (frame_content.size() > 5 && (has_more || is_progressive(frame))) {
        image.header.working_bytes = coefficient_bytes(frame_content);
      }
      break;
    }
    at += length;

    if (is_frame(marker) && content.size() >= 5) {
      frame = marker;
      frame_content = content;
      image.header.height = u16_at(content, 1);
      image.header.width = u16_at(content, 3);
    } else if (marker == kApp1 && content.starts_with(kExif) &&
               image.header.orientation == 1) {
      image.header.orientation =
          exif_orientation(as_bytes(content.substr(kExif.size())));
    }
  }
  if (image.header.width == 0 || image.header.height == 0) {
    return corrupt("JPEG has no frame header, or no size");
  }
  image.fault = fault_of(image.header, frame, text.substr(at));
  return image;
}

}  // namespace leat
