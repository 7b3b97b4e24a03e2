#include "leat/codec/image_formats.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/codec/image/claimed_image.h"
#include "leat/codec/jpeg/jpeg_header.h"
#include "leat/codec/jpeg/jpeg_reader.h"
#include "leat/codec/npy/npy_labels.h"
#include "leat/codec/png/png_header.h"
#include "leat/codec/png/png_reader.h"
#include "leat/codec/tiff/tiff_header.h"
#include "leat/codec/tiff/tiff_reader.h"
#include "leat/codec/webp/webp_header.h"
#include "leat/codec/webp/webp_reader.h"

namespace leat {
namespace {

struct FormatInfo {
  std::string_view name;
  Result<ClaimedImage> (*read_header)(std::span<const std::byte>);
  std::unique_ptr<ImageReader> (*make_reader)();
};

// In the order of the enumerators.
constexpr std::array kFormats = {
    FormatInfo{"JPEG", read_jpeg_header, make_jpeg_reader},
    FormatInfo{"PNG", read_png_header, make_png_reader},
    FormatInfo{"WebP", read_webp_header, make_webp_reader},
    FormatInfo{"TIFF", read_tiff_header, make_tiff_reader},
    FormatInfo{".npy", read_npy_labels_header, make_npy_label_reader}};

const FormatInfo& info_of(ImageFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

Result<void> check_pixels(const ImageHeader& header, std::uint64_t max_pixels) {
  const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
  if (pixels <= max_pixels) return {};
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("{} claims {} x {} pixels, more than the limit of {}; if you "
                  "trust it, raise DecodeImage(max_pixels=...)",
                  info_of(header.format).name, header.width, header.height,
                  max_pixels));
}

bool may_hold_labels(const ImageHeader& header) {
  return header.format == ImageFormat::kPng ||
         header.format == ImageFormat::kNpy ||
         (header.format == ImageFormat::kTiff && header.is_grey);
}

class AnyImageReader final : public ImageReader {
 public:
  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    if (has_16_bits(request.mode) && header.depth != 16) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("this {} has no 16 bits a channel",
                               info_of(header.format).name));
    }
    if (request.mode == PixelMode::kLabels && !may_hold_labels(header)) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{} holds colours and no labels: a mask is a "
                               "PNG in grey or with a palette, a grey TIFF, "
                               "or an array in a .npy",
                               info_of(header.format).name));
    }
    if (request.mode != PixelMode::kLabels &&
        header.format == ImageFormat::kNpy) {
      return Error(ErrorCode::kCorrupt,
                   "a .npy is no picture: DecodeMask reads it as a mask, and "
                   "LoadNpy as an array");
    }
    std::unique_ptr<ImageReader>& reader =
        readers_[static_cast<std::size_t>(header.format)];
    if (!reader) reader = info_of(header.format).make_reader();
    current_ = reader.get();
    return current_->start(encoded, header, request);
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    return current_->read_rows(into, stride_bytes, rows);
  }

  std::uint32_t warnings() const override {
    return current_ == nullptr ? 0 : current_->warnings();
  }

  void finish() override {
    if (current_ != nullptr) current_->finish();
  }

 private:
  // Made when first needed.
  std::array<std::unique_ptr<ImageReader>, kFormats.size()> readers_;
  ImageReader* current_ = nullptr;
};

}  // namespace

std::string_view name_of(ImageFormat format) { return info_of(format).name; }

std::optional<ImageFormat> image_format_of(std::span<const std::byte> encoded) {
  const std::string_view text = as_text(encoded);
  if (text.starts_with("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (text.starts_with("RIFF") && text.size() >= 12 &&
      text.substr(8, 4) == "WEBP") {
    return ImageFormat::kWebp;
  }
  if (text.starts_with(std::string_view("II*\0", 4)) ||
      text.starts_with(std::string_view("MM\0*", 4)) ||
      text.starts_with(std::string_view("II+\0", 4)) ||  // BigTIFF
      text.starts_with(std::string_view("MM\0+", 4))) {
    return ImageFormat::kTiff;
  }
  if (text.starts_with("\x93NUMPY")) return ImageFormat::kNpy;
  return std::nullopt;
}

Result<ImageHeader> read_image_header(std::span<const std::byte> encoded,
                                      std::uint64_t max_pixels) {
  if (encoded.empty()) {
    return Error(ErrorCode::kCorrupt, "the image has no bytes");
  }
  const std::optional<ImageFormat> format = image_format_of(encoded);
  if (!format) {
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("neither JPEG, PNG, WebP nor TIFF: the {} bytes begin "
                    "with {:02x}; check the field that is decoded",
                    encoded.size(), std::to_integer<unsigned>(encoded[0])));
  }
  LEAT_TRY(const ClaimedImage claimed, info_of(*format).read_header(encoded));
  LEAT_TRY_VOID(check_pixels(claimed.header, max_pixels));
  // Only now, so that a bomb is called a bomb.
  if (!claimed.fault.empty()) return Error(ErrorCode::kCorrupt, claimed.fault);
  return claimed.header;
}

std::unique_ptr<ImageReader> make_image_reader() {
  return std::make_unique<AnyImageReader>();
}

}  // namespace leat
