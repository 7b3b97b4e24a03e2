// Pixels that are there already, read as a decoder reads an image.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "leat/codec/image/image.h"

namespace leat {

/// Rows of an image in memory, in place of a decoder.
class PixelReader final : public ImageReader {
 public:
  explicit PixelReader(std::size_t pixel_bytes) : pixel_bytes_(pixel_bytes) {}

  Result<Rect> start(std::span<const std::byte> encoded,
                     const ImageHeader& header,
                     const DecodeRequest& request) override {
    stride_ = header.width * pixel_bytes_;
    row_bytes_ = request.wanted.width * pixel_bytes_;
    next_ = encoded.subspan(request.wanted.y * stride_ +
                            request.wanted.x * pixel_bytes_);
    return request.wanted;
  }

  Result<void> read_rows(std::uint8_t* into, std::size_t stride_bytes,
                         std::uint32_t rows) override {
    for (std::uint32_t i = 0; i < rows; ++i) {
      std::memcpy(into + i * stride_bytes, next_.data(), row_bytes_);
      next_ = next_.subspan(std::min(stride_, next_.size()));
    }
    return {};
  }

  std::uint32_t warnings() const override { return 0; }
  void finish() override {}

 private:
  const std::size_t pixel_bytes_;
  std::size_t stride_ = 0;
  std::size_t row_bytes_ = 0;
  std::span<const std::byte> next_;
};

}  // namespace leat
