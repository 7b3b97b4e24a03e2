// libwebp decodes the wanted part in one go, into memory of ours.
//
// Chroma has half the resolution, and is blended with its neighbours. At the
// border of the decoded part these are missing, so two pixels more are decoded
// on each side: the part is then equal to that of the whole image. Lossy images
// can only be cut at even pixels.

#include "leat/codec/webp/webp_reader.h"

#include <webp/decode.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/image/grey.h"
#include "leat/codec/image_codecs.h"
#include "leat/codec/webp/webp_header.h"

namespace leat {
namespace {

constexpr std::uint32_t kMargin = 2;
constexpr std::size_t kChannels = 3;

struct Side {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// With its margin, from an even pixel on, within `size`.
Side widened(std::uint32_t first, std::uint32_t count, std::uint32_t size) {
  const std::uint32_t begin = (first - std::min(first, kMargin)) / 2 * 2;
  const std::uint32_t end = std::min(size, first + count + kMargin);
  return {begin, end - begin};
}

const char* reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a feature that libwebp does not know";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "cut short";
    default:
      return "damaged";
  }
}

class WebpReader final : public ImageReader {
 public:
  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    const Rect& wanted = request.wanted;
    const Side x = widened(wanted.x, wanted.width, header.width);
    const Side y = widened(wanted.y, wanted.height, header.height);
    width_ = x.count;
    to_grey_ = request.mode == PixelMode::kGrey;
    next_row_ = wanted.y - y.first;
    pixels_ = Buffer();  // Free first: never both at once.
    pixels_ = Buffer(row_bytes() * y.count);

    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0) {
      return Error(ErrorCode::kInternal, "libwebp is of another version");
    }
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(x.first);
    config.options.crop_top = static_cast<int>(y.first);
    config.options.crop_width = static_cast<int>(x.count);
    config.options.crop_height = static_cast<int>(y.count);
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = reinterpret_cast<std::uint8_t*>(pixels_.data());
    config.output.u.RGBA.stride = static_cast<int>(row_bytes());
    config.output.u.RGBA.size = pixels_.size();
    const std::span<const std::byte> still = still_of_webp(encoded);
    const VP8StatusCode status =
        WebPDecode(reinterpret_cast<const std::uint8_t*>(still.data()),
                   still.size(), &config);
    WebPFreeDecBuffer(&config.output);
    if (status != VP8_STATUS_OK) {
      return corrupt("WebP: {}", reason_of(status));
    }
    return Rect{x.first, wanted.y, x.count, wanted.height};
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    for (std::uint32_t i = 0; i < rows; ++i, into += stride_bytes) {
      const auto* row = reinterpret_cast<const std::uint8_t*>(pixels_.data()) +
                        next_row_++ * row_bytes();
      if (to_grey_) {
        rgb_to_grey(row, into, width_);
      } else {
        std::memcpy(into, row, row_bytes());
      }
    }
    return {};
  }

  std::uint32_t warnings() const override { return 0; }

  void finish() override { pixels_ = Buffer(); }

 private:
  std::size_t row_bytes() const { return width_ * kChannels; }

  bool to_grey_ = false;
  std::uint32_t width_ = 0;
  std::size_t next_row_ = 0;  // The next row of pixels_.
  Buffer pixels_;
};

constexpr std::string_view kWebpEndings[] = {"webp"};

bool is_webp(std::string_view encoded) {
  return encoded.starts_with("RIFF") && encoded.size() >= 12 &&
         encoded.substr(8, 4) == "WEBP";
}

}  // namespace

std::unique_ptr<ImageReader> make_webp_reader() {
  return std::make_unique<WebpReader>();
}

constinit const ImageCodec kWebpCodec = {.name = "WebP",
                                         .endings = kWebpEndings,
                                         .recognizes = is_webp,
                                         .read_header = read_webp_header,
                                         .make_reader = make_webp_reader};

}  // namespace leat
