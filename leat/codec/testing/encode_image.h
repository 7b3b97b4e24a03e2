// Small images for tests, made here and now.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace leat::testing {

/// Interleaved bytes.
struct Pixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;
  std::vector<std::uint8_t> bytes;

  std::uint8_t at(std::uint32_t x, std::uint32_t y, std::uint32_t c) const {
    return bytes[(std::size_t{y} * width + x) * channels + c];
  }
};

/// Waves, edges and noise: hard to get right by accident. The same every time.
Pixels picture(std::uint32_t width, std::uint32_t height,
               std::uint32_t channels = 3);

struct JpegOptions {
  int quality = 90;
  int horizontal_sampling = 2;  ///< For luma, to chroma's 1.
  int vertical_sampling = 2;
  bool is_progressive = false;
  int restart_rows = 0;
  std::string exif;  ///< The bytes behind "Exif\0\0"; empty for none.
};

/// 1 channel is grey, 3 are YCbCr, 4 are CMYK as Adobe writes it.
std::string encode_jpeg(const Pixels& pixels, const JpegOptions& options = {});

struct PngOptions {
  bool is_interlaced = false;
  int depth = 8;  ///< 16: each byte becomes the upper one. Less: upper bits.
  std::string exif;
};

/// 1 channel is grey, 2 grey and alpha, 3 colour, 4 colour and alpha.
std::string encode_png(const Pixels& pixels, const PngOptions& options = {});

struct WebpOptions {
  float quality = 90;  ///< 100 and more: lossless.
};

/// 3 channels are colour, 4 colour and alpha.
std::string encode_webp(const Pixels& pixels, const WebpOptions& options = {});

/// A WebP with a header of its own chunk, and EXIF behind the pixels.
std::string with_webp_exif(const Pixels& pixels, const std::string& exif);

/// A lossless animation of that size, whose pictures lie at its left and top.
std::string animated_webp(std::uint32_t width, std::uint32_t height,
                          const std::vector<Pixels>& frames);

/// The smallest block of EXIF that gives this orientation.
std::string exif_of(std::uint16_t orientation);

}  // namespace leat::testing
