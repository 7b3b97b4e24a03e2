// A format that no user wants, added as leat/codec/README.md says: "TOY!", the
// width and the height, a byte each, and three bytes for each pixel.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/codec/image/grey.h"
#include "tests/codec/image_codecs.h"

namespace leat {
namespace {

constexpr std::string_view kMagic = "TOY!";
constexpr std::size_t kHeadBytes = 6;
constexpr std::string_view kEndings[] = {"toy"};

bool is_toy(std::string_view encoded) { return encoded.starts_with(kMagic); }

Result<ClaimedImage> read_toy_header(std::span<const std::byte> encoded) {
  if (encoded.size() < kHeadBytes) {
    return Error(ErrorCode::kCorrupt, "toy has no header, or half of one");
  }
  ClaimedImage image;
  image.header.width = std::to_integer<std::uint32_t>(encoded[4]);
  image.header.height = std::to_integer<std::uint32_t>(encoded[5]);
  if (image.header.width == 0 || image.header.height == 0) {
    return Error(ErrorCode::kCorrupt, "toy has no pixels");
  }
  const std::size_t bytes =
      kHeadBytes + std::size_t{3} * image.header.width * image.header.height;
  if (encoded.size() < bytes) image.fault = "toy is cut short";
  return image;
}

class ToyReader final : public ImageReader {
 public:
  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    pixels_ =
        reinterpret_cast<const std::uint8_t*>(encoded.data()) + kHeadBytes;
    width_ = header.width;
    request_ = request;
    return request.wanted;
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    for (std::uint32_t i = 0; i < rows; ++i, into += stride_bytes) {
      const std::size_t first =
          std::size_t{request_.wanted.y++} * width_ + request_.wanted.x;
      const std::uint8_t* const row = pixels_ + 3 * first;
      if (request_.mode == PixelMode::kGrey) {
        rgb_to_grey(row, into, request_.wanted.width);
      } else {
        std::copy_n(row, std::size_t{3} * request_.wanted.width, into);
      }
    }
    return {};
  }

  std::uint32_t warnings() const override { return 0; }
  void finish() override { pixels_ = nullptr; }

 private:
  const std::uint8_t* pixels_ = nullptr;
  std::uint32_t width_ = 0;
  DecodeRequest request_;
};

std::unique_ptr<ImageReader> make_toy_reader() {
  return std::make_unique<ToyReader>();
}

}  // namespace

constinit const ImageCodec kToyCodec = {.name = "toy",
                                        .endings = kEndings,
                                        .recognizes = is_toy,
                                        .read_header = read_toy_header,
                                        .make_reader = make_toy_reader};

}  // namespace leat
