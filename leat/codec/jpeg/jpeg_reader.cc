// The part of an image that is wanted is decoded as if cut from the whole.
// libjpeg can leave out columns of blocks (jpeg_crop_scanline) and rows
// (jpeg_skip_scanlines), but at the seam its chroma upsampling lacks the
// neighbour that the whole image has. So a few columns more than wanted are
// decoded on both sides, and the seam lies outside of what anybody reads.

#include "leat/codec/jpeg/jpeg_reader.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_codecs.h"
#include "leat/codec/jpeg/jpeg_header.h"
#include "leat/codec/jpeg/jpeg_shim.h"

namespace leat {
namespace {

// At least one sample of the coarsest chroma that is interpolated (2 pixels).
constexpr std::uint32_t kSeamColumns = 8;

/// (a * b) / 255, rounded; exact for bytes.
std::uint32_t mul_div_255(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

/// Adobe stores 255 - ink, and so each product of two of them is light.
void cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb,
                 std::uint32_t width) {
  for (std::uint32_t i = 0; i < width; ++i, cmyk += 4, rgb += 3) {
    const std::uint32_t paper = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const std::uint32_t ink = mul_div_255(255u - cmyk[c], paper);
      rgb[c] = static_cast<std::uint8_t>(paper - ink);
    }
  }
}

class JpegReader final : public ImageReader {
 public:
  JpegReader() { LEAT_CHECK(jpeg_shim_create(&shim_)); }
  ~JpegReader() override { jpeg_shim_destroy(&shim_); }

  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    if (!jpeg_shim_begin(&shim_,
                         reinterpret_cast<const unsigned char*>(encoded.data()),
                         encoded.size())) {
      return failure();
    }
    const jpeg_decompress_struct& jpeg = shim_.jpeg;
    if (jpeg.image_width != header.width ||
        jpeg.image_height != header.height) {
      return corrupt("JPEG has two frame headers");
    }
    LEAT_TRY_VOID(set_parameters(request));
    if (!jpeg_shim_start(&shim_)) return failure();
    return cut(request.wanted);
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    if (!converts_cmyk_) {
      if (!jpeg_shim_read_rows(&shim_, into, stride_bytes, rows)) {
        return failure();
      }
      return {};
    }
    for (std::uint32_t i = 0; i < rows; ++i, into += stride_bytes) {
      if (!jpeg_shim_read_rows(&shim_, cmyk_.data(), cmyk_.size(), 1)) {
        return failure();
      }
      std::uint8_t* rgb = mode_ == PixelMode::kRgb ? into : rgb_.data();
      cmyk_to_rgb(cmyk_.data(), rgb, width_);
      if (mode_ == PixelMode::kGrey) rgb_to_grey(rgb, into, width_);
    }
    return {};
  }

  std::uint32_t warnings() const override { return shim_.warnings; }

  void finish() override { jpeg_shim_finish(&shim_); }

 private:
  Result<void> set_parameters(const DecodeRequest& request) {
    jpeg_decompress_struct& jpeg = shim_.jpeg;
    mode_ = request.mode;
    converts_cmyk_ = jpeg.num_components == 4;
    if (jpeg.num_components != 1 && jpeg.num_components != 3 &&
        jpeg.num_components != 4) {
      return corrupt("JPEG has {} colour components, not 1, 3 or 4",
                     jpeg.num_components);
    }
    jpeg.out_color_space = converts_cmyk_              ? JCS_CMYK
                           : mode_ == PixelMode::kGrey ? JCS_GRAYSCALE
                                                       : JCS_RGB;
    jpeg.scale_num = 1;
    jpeg.scale_denom = 1u << request.shrink_log2;
    jpeg.dct_method = JDCT_ISLOW;  // As Pillow: exact to a rounding.
    jpeg.do_fancy_upsampling = TRUE;
    return {};
  }

  Result<Rect> cut(const Rect& wanted) {
    const jpeg_decompress_struct& jpeg = shim_.jpeg;
    Rect rows = wanted;
    const std::uint32_t from =
        wanted.x > kSeamColumns ? wanted.x - kSeamColumns : 0;
    const std::uint32_t to = std::min<std::uint32_t>(
        jpeg.output_width, wanted.x + wanted.width + kSeamColumns);
    rows.x = 0;
    rows.width = jpeg.output_width;
    if (to - from < jpeg.output_width) {
      JDIMENSION x = from;
      JDIMENSION width = to - from;
      if (!jpeg_shim_crop(&shim_, &x, &width)) return failure();
      rows.x = x;
      rows.width = width;
    }
    if (rows.y > 0 && !jpeg_shim_skip_rows(&shim_, rows.y)) return failure();
    width_ = rows.width;
    if (converts_cmyk_) {
      cmyk_.resize(std::size_t{width_} * 4);
      rgb_.resize(std::size_t{width_} * 3);
    }
    return rows;
  }

  Error failure() const { return corrupt("JPEG: {}", shim_.message); }

  JpegShim shim_;
  PixelMode mode_ = PixelMode::kRgb;
  bool converts_cmyk_ = false;
  std::uint32_t width_ = 0;
  std::vector<std::uint8_t> cmyk_;  // One row.
  std::vector<std::uint8_t> rgb_;   // One row, on the way to grey.
};

constexpr std::string_view kJpegEndings[] = {"jpg", "jpeg"};

bool is_jpeg(std::string_view encoded) {
  return encoded.starts_with("\xff\xd8\xff");
}

}  // namespace

std::unique_ptr<ImageReader> make_jpeg_reader() {
  return std::make_unique<JpegReader>();
}

std::uint32_t jpeg_library_version() { return LIBJPEG_TURBO_VERSION_NUMBER; }

constinit const ImageCodec kJpegCodec = {
    .name = "JPEG",
    .endings = kJpegEndings,
    .recognizes = is_jpeg,
    .read_header = read_jpeg_header,
    .make_reader = make_jpeg_reader,
    .stored_lighter = "in one pass, not progressive"};

}  // namespace leat
