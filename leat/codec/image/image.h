// The common part of the image decoders: headers, limits, and rows of pixels.
// image_formats.h has the decoders of all formats in one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "leat/base/result.h"

namespace leat {

struct ImageCodec;  // image_codec.h

/// The form of a pixel: one byte for each channel, interleaved; or 16 bits, in
/// the machine's order.
enum class PixelMode : std::uint8_t {
  kRgb,
  kGrey,
  kGrey16,
  kRgb16,
  /// Numbers as they are stored: grey values of up to 8 bits, unscaled, or
  /// indices into a palette. PNGs, grey TIFFs of 8 bits and arrays have them;
  /// another picture is an error.
  kLabels,
};

constexpr std::uint32_t channels_of(PixelMode mode) {
  return mode == PixelMode::kRgb || mode == PixelMode::kRgb16 ? 3 : 1;
}

constexpr bool has_16_bits(PixelMode mode) {
  return mode == PixelMode::kGrey16 || mode == PixelMode::kRgb16;
}

constexpr std::uint32_t bytes_per_pixel(PixelMode mode) {
  return channels_of(mode) * (has_16_bits(mode) ? 2 : 1);
}

/// A rectangle of pixels, from the top left.
struct Rect {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const Rect&, const Rect&) = default;
};

/// As many pixels as Pillow opens without protest.
inline constexpr std::uint64_t kDefaultMaxPixels = 178'956'970;

/// The facts in an image's header; no pixels have been decoded.
struct ImageHeader {
  const ImageCodec* codec = nullptr;  ///< Set by read_image_header().
  std::uint32_t width = 0;       ///< As stored: EXIF orientation not applied.
  std::uint32_t height = 0;      ///< As stored: EXIF orientation not applied.
  std::uint8_t orientation = 1;  ///< EXIF's, 1 to 8; 1 is upright.
  std::uint8_t depth = 8;        ///< Bits of a channel; 8 if there are fewer.
  /// A PNG, a TIFF or an array has one channel, and no palette.
  bool is_grey = false;
  bool has_palette = false;
  /// Its numbers may be labels: see PixelMode::kLabels.
  bool may_hold_labels = false;
  /// It can be decoded at 1 / 2^n of its size, for n up to this.
  std::uint8_t most_shrink_log2 = 0;
  /// The most memory that decoding takes besides a few rows: all coefficients
  /// of a JPEG in several scans, all pixels of an interlaced PNG or of a WebP.
  std::uint64_t working_bytes = 0;
};

/// Which pixels are wanted.
struct DecodeRequest {
  /// kGrey16 takes grey images of 16 bits, kRgb16 all of 16; the others cut
  /// these to the upper 8.
  PixelMode mode = PixelMode::kRgb;
  /// Decode at 1 / 2^shrink_log2 of the size, rounded up: 0 to
  /// ImageHeader::most_shrink_log2.
  std::uint32_t shrink_log2 = 0;
  /// Within the (shrunk) image as stored. Not empty.
  Rect wanted;
};

/// Decodes one image after another, row by row, and keeps its memory.
///
/// Threads:  one at a time.
/// Lifetime: `encoded` must live until finish() or the next start().
class ImageReader {
 public:
  virtual ~ImageReader() = default;

  /// Starts over on another image. Answers which pixels the rows will hold: all
  /// that is wanted, with columns to spare on both sides where that is cheaper.
  ///
  /// REQUIRES: `header` came from read_image_header(encoded); `wanted` lies
  /// within the image.
  virtual Result<Rect> start(std::span<const std::byte> encoded,
                             const ImageHeader& header,
                             const DecodeRequest& request) = 0;

  /// Decodes the next `rows` rows, `stride_bytes` apart. No more than were
  /// announced.
  virtual Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                                 std::uint32_t rows) = 0;

  /// Damage found and passed over since start().
  virtual std::uint32_t warnings() const = 0;

  /// Gives back the memory that the image took; `encoded` is needed no more.
  virtual void finish() = 0;
};

}  // namespace leat
