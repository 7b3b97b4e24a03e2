#include "leat/codec/png/png_reader.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_codecs.h"
#include "leat/codec/png/png_header.h"
#include "leat/codec/png/png_shim.h"

namespace leat {
namespace {

class PngReader final : public ImageReader {
 public:
  ~PngReader() override { png_shim_end(&shim_); }

  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    whole_ = Buffer();
    if (!png_shim_begin(&shim_,
                        reinterpret_cast<const unsigned char*>(encoded.data()),
                        encoded.size()) ||
        !png_shim_start(&shim_, rows_of(request.mode))) {
      return failure();
    }
    if (request.mode == PixelMode::kLabels) LEAT_TRY_VOID(check_labels());
    const std::size_t channels = png_get_channels(shim_.png, shim_.info);
    row_bytes_ = png_get_rowbytes(shim_.png, shim_.info);
    width_ = header.width;
    to_grey_ = request.mode == PixelMode::kGrey && channels == 3;
    const std::size_t row_bytes =
        std::size_t{width_} *
        (to_grey_ ? channels : bytes_per_pixel(request.mode));
    if (png_get_image_width(shim_.png, shim_.info) != header.width ||
        png_get_image_height(shim_.png, shim_.info) != header.height ||
        row_bytes_ != row_bytes ||
        (!to_grey_ && channels != channels_of(request.mode))) {
      return corrupt("PNG has a header that changes");
    }
    row_.resize(row_bytes_);
    next_row_ = request.wanted.y;
    LEAT_TRY_VOID(skip_to(request.wanted.y, header.height));
    return Rect{0, request.wanted.y, width_, request.wanted.height};
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    for (std::uint32_t i = 0; i < rows; ++i, into += stride_bytes) {
      std::uint8_t* row = to_grey_ ? row_.data() : into;
      LEAT_TRY_VOID(next_row(row));
      if (to_grey_) rgb_to_grey(row, into, width_);
    }
    return {};
  }

  std::uint32_t warnings() const override { return shim_.warnings; }

  void finish() override {
    whole_ = Buffer();
    png_shim_end(&shim_);
  }

 private:
  static PngRows rows_of(PixelMode mode) {
    switch (mode) {
      case PixelMode::kRgb:
        return PngRows::kRgb;
      case PixelMode::kGrey:
        return PngRows::kAsStored;
      case PixelMode::kGrey16:
        return PngRows::kGrey16;
      case PixelMode::kRgb16:
        return PngRows::kRgb16;
      case PixelMode::kLabels:
        break;
    }
    return PngRows::kLabels;
  }

  Result<void> check_labels() const {
    const png_byte colour = png_get_color_type(shim_.png, shim_.info);
    if (shim_.stored_depth == 16) {
      return corrupt("PNG has 16 bits a pixel, and labels have at most 8");
    }
    if ((colour & PNG_COLOR_MASK_COLOR) == 0 ||
        (colour & PNG_COLOR_MASK_PALETTE) != 0) {
      return {};
    }
    return corrupt(
        "PNG holds colours and no labels: a mask is grey, or has a palette; "
        "decode it as an image, and turn its colours into numbers in a "
        "function");
  }

  Result<void> skip_to(std::uint32_t row, std::uint32_t height) {
    if (png_get_interlace_type(shim_.png, shim_.info) != PNG_INTERLACE_NONE) {
      return read_interlaced(height);
    }
    for (std::uint32_t i = 0; i < row; ++i) {
      if (!png_shim_read_row(&shim_, row_.data())) return failure();
    }
    return {};
  }

  /// The rows of an interlaced image are complete together, and not before.
  Result<void> read_interlaced(std::uint32_t height) {
    whole_ = Buffer(row_bytes_ * height);
    std::vector<unsigned char*> rows(height);
    auto* first = reinterpret_cast<unsigned char*>(whole_.data());
    for (std::uint32_t i = 0; i < height; ++i) rows[i] = first + i * row_bytes_;
    if (!png_shim_read_image(&shim_, rows.data())) return failure();
    return {};
  }

  Result<void> next_row(std::uint8_t* into) {
    if (whole_.size() == 0) {
      if (!png_shim_read_row(&shim_, into)) return failure();
      return {};
    }
    std::memcpy(into, whole_.data() + next_row_++ * row_bytes_, row_bytes_);
    return {};
  }

  Error failure() const { return corrupt("PNG: {}", shim_.message); }

  PngShim shim_{};
  bool to_grey_ = false;
  std::uint32_t width_ = 0;
  std::size_t row_bytes_ = 0;
  std::size_t next_row_ = 0;       // The next row of whole_.
  std::vector<std::uint8_t> row_;  // One row, as stored.
  Buffer whole_;                   // An interlaced image.
};

constexpr std::string_view kPngEndings[] = {"png"};

bool is_png(std::string_view encoded) {
  return encoded.starts_with("\x89PNG\r\n\x1a\n");
}

}  // namespace

std::unique_ptr<ImageReader> make_png_reader() {
  return std::make_unique<PngReader>();
}

constinit const ImageCodec kPngCodec = {
    .name = "PNG",
    .endings = kPngEndings,
    .recognizes = is_png,
    .read_header = read_png_header,
    .make_reader = make_png_reader,
    .stored_lighter = "in one pass, not interlaced"};

}  // namespace leat
