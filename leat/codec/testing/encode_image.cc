#include "leat/codec/testing/encode_image.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

namespace leat::testing {

Pixels picture(std::uint32_t width, std::uint32_t height,
               std::uint32_t channels) {
  Pixels pixels{width, height, channels, {}};
  pixels.bytes.reserve(std::size_t{width} * height * channels);
  std::uint32_t noise = 12345;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < channels; ++c) {
        noise = noise * 1664525u + 1013904223u;
        const double wave = std::sin(x * 0.11 + c) * std::cos(y * 0.07 - c);
        const bool is_inside = (x / 23 + y / 17 + c) % 3 == 0;
        const double value =
            118 + 70 * wave + (is_inside ? 45 : 0) + (noise >> 24) * 0.08;
        pixels.bytes.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return pixels;
}

std::string encode_jpeg(const Pixels& pixels, const JpegOptions& options) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = pixels.width;
  jpeg.image_height = pixels.height;
  jpeg.input_components = static_cast<int>(pixels.channels);
  jpeg.in_color_space = pixels.channels == 1   ? JCS_GRAYSCALE
                        : pixels.channels == 3 ? JCS_RGB
                                               : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (pixels.channels == 3) {
    jpeg.comp_info[0].h_samp_factor = options.horizontal_sampling;
    jpeg.comp_info[0].v_samp_factor = options.vertical_sampling;
  }
  if (options.is_progressive) jpeg_simple_progression(&jpeg);
  jpeg.restart_in_rows = options.restart_rows;
  jpeg_start_compress(&jpeg, TRUE);
  if (!options.exif.empty()) {
    const std::string marker = std::string("Exif\0\0", 6) + options.exif;
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1,
                      reinterpret_cast<const JOCTET*>(marker.data()),
                      static_cast<unsigned>(marker.size()));
  }
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.bytes.data() +
                                     std::size_t{jpeg.next_scanline} *
                                         pixels.width * pixels.channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string encoded(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return encoded;
}

namespace {

void append(png_structp png, png_bytep bytes, std::size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<char*>(bytes), size);
}

/// One row at another depth: bytes doubled, or their upper bits packed.
std::vector<std::uint8_t> row_at_depth(const std::uint8_t* row,
                                       std::size_t count, int depth) {
  std::vector<std::uint8_t> packed;
  if (depth == 16) {
    for (std::size_t i = 0; i < count; ++i) {
      packed.insert(packed.end(), {row[i], static_cast<std::uint8_t>(i)});
    }
    return packed;
  }
  packed.resize((count * static_cast<std::size_t>(depth) + 7) / 8);
  const auto bits = static_cast<std::size_t>(depth);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned upper = static_cast<unsigned>(row[i]) >> (8 - depth);
    const std::size_t at = i * bits;
    packed[at / 8] |= static_cast<std::uint8_t>(upper << (8 - bits - at % 8));
  }
  return packed;
}

}  // namespace

std::string encode_png(const Pixels& pixels, const PngOptions& options) {
  std::string encoded;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &encoded, append, nullptr);
  constexpr int kColours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                              PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, pixels.width, pixels.height, options.depth,
               kColours[pixels.channels],
               options.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::string exif = options.exif;
  if (!exif.empty()) {
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()),
                   reinterpret_cast<png_bytep>(exif.data()));
  }
  png_write_info(png, info);
  const std::size_t count = std::size_t{pixels.width} * pixels.channels;
  std::vector<std::vector<std::uint8_t>> rows;
  rows.reserve(pixels.height);
  std::vector<png_bytep> pointers;
  pointers.reserve(pixels.height);
  for (std::uint32_t y = 0; y < pixels.height; ++y) {
    rows.push_back(
        row_at_depth(pixels.bytes.data() + y * count, count, options.depth));
  }
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return encoded;
}

std::string encode_webp(const Pixels& pixels, const WebpOptions& options) {
  std::uint8_t* out = nullptr;
  const auto width = static_cast<int>(pixels.width);
  const auto height = static_cast<int>(pixels.height);
  const int stride = width * static_cast<int>(pixels.channels);
  const std::uint8_t* bytes = pixels.bytes.data();
  const bool is_lossless = options.quality >= 100;
  const bool has_alpha = pixels.channels == 4;
  std::size_t size = 0;
  if (is_lossless) {
    size = (has_alpha ? WebPEncodeLosslessRGBA : WebPEncodeLosslessRGB)(
        bytes, width, height, stride, &out);
  } else {
    size = (has_alpha ? WebPEncodeRGBA : WebPEncodeRGB)(
        bytes, width, height, stride, options.quality, &out);
  }
  std::string encoded(reinterpret_cast<char*>(out), size);
  WebPFree(out);
  return encoded;
}

namespace {

std::string little_endian(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return text;
}

std::string riff_chunk(const std::string& type, const std::string& content) {
  return type + little_endian(content.size(), 4) + content +
         std::string(content.size() % 2, '\0');
}

}  // namespace

std::string with_webp_exif(const Pixels& pixels, const std::string& exif) {
  constexpr char kHasExif = 8;
  const std::string extended = kHasExif + std::string(3, '\0') +
                               little_endian(pixels.width - 1, 3) +
                               little_endian(pixels.height - 1, 3);
  return riff_chunk("RIFF", "WEBP" + riff_chunk("VP8X", extended) +
                                encode_webp(pixels).substr(12) +
                                riff_chunk("EXIF", exif));
}

std::string animated_webp(std::uint32_t width, std::uint32_t height,
                          const std::vector<Pixels>& frames) {
  constexpr char kIsAnimation = 2;
  std::string chunks = riff_chunk("VP8X", kIsAnimation + std::string(3, '\0') +
                                              little_endian(width - 1, 3) +
                                              little_endian(height - 1, 3)) +
                       riff_chunk("ANIM", std::string(6, '\0'));
  for (const Pixels& frame : frames) {
    chunks += riff_chunk(
        "ANMF", std::string(6, '\0') + little_endian(frame.width - 1, 3) +
                    little_endian(frame.height - 1, 3) + little_endian(100, 3) +
                    '\0' + encode_webp(frame, {.quality = 100}).substr(12));
  }
  return riff_chunk("RIFF", "WEBP" + chunks);
}

std::string exif_of(std::uint16_t orientation) {
  std::string exif("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01", 18);
  exif += static_cast<char>(orientation >> 8);
  exif += static_cast<char>(orientation & 0xff);
  return exif + std::string(6, '\0');
}

}  // namespace leat::testing
