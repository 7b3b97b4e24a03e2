#include "leat/pipeline/ops/row_sink.h"

#include <algorithm>
#include <cstring>

#include "leat/pipeline/ops/kernels.h"

namespace leat {
namespace {

std::size_t whole_blocks(std::size_t width) {
  return (width + kPlaneBlock - 1) / kPlaneBlock * kPlaneBlock;
}

}  // namespace

TensorSpec PixelFormat::tensor(PixelSize size) const {
  const std::int64_t width = size.width;
  const std::int64_t height = size.height;
  const std::int64_t depth = channels;
  if (layout == PixelLayout::kChw) return {dtype, {depth, height, width}};
  return {dtype, {height, width, depth}};
}

ArraySink::ArraySink(const PixelFormat& format, PixelSize size, int step,
                     Scratch& scratch, std::span<std::byte> out)
    : format_(format),
      size_(size),
      step_(step),
      plane_stride_(whole_blocks(size.width)),
      row_(scratch.row.at_least(std::size_t{size.width} * format.channels +
                                kRowSlackBytes)),
      planes_(scratch.planes.at_least(plane_stride_ * 3 + kRowSlackBytes)),
      out_(out.data()) {}

std::uint8_t* ArraySink::place(std::uint32_t) { return row_; }

void ArraySink::done(std::uint32_t y) {
  if (format_.dtype == DType::kFloat32) {
    write_floats(y);
  } else {
    write_bytes(y);
  }
}

std::size_t ArraySink::plane_row(std::uint32_t c, std::uint32_t y) const {
  return (std::size_t{c} * size_.height + y) * size_.width;
}

const std::uint8_t* ArraySink::planes() {
  if (format_.channels == 3) {
    split_rgb(row_, size_.width, step_, planes_, plane_stride_);
    // Mirrored pixels stand at the end of their blocks.
    return step_ < 0 ? planes_ + (plane_stride_ - size_.width) : planes_;
  }
  if (step_ > 0) return row_;
  std::reverse_copy(row_, row_ + size_.width, planes_);
  return planes_;
}

void ArraySink::write_bytes(std::uint32_t y) {
  auto* out = reinterpret_cast<std::uint8_t*>(out_);
  const std::size_t row_bytes = std::size_t{size_.width} * format_.channels;
  if (format_.layout == PixelLayout::kHwc && format_.channels == 3) {
    std::uint8_t* into = out + y * row_bytes;
    if (step_ > 0) {
      std::memcpy(into, row_, row_bytes);
      return;
    }
    for (std::size_t x = 0; x < size_.width; ++x) {
      std::memcpy(into + x * 3, row_ + (size_.width - 1 - x) * 3, 3);
    }
    return;
  }
  const std::uint8_t* from = planes();
  for (std::uint32_t c = 0; c < format_.channels; ++c) {
    std::memcpy(out + plane_row(c, y), from + c * plane_stride_, size_.width);
  }
}

void ArraySink::write_floats(std::uint32_t y) {
  auto* out = reinterpret_cast<float*>(out_);
  if (format_.layout == PixelLayout::kHwc && format_.channels == 3) {
    write_interleaved_floats(out + std::size_t{y} * size_.width * 3);
    return;
  }
  const std::uint8_t* from = planes();
  for (std::uint32_t c = 0; c < format_.channels; ++c) {
    to_float(from + c * plane_stride_, size_.width, format_.scale[c],
             format_.bias[c], out + plane_row(c, y));
  }
}

void ArraySink::write_interleaved_floats(float* into) {
  for (std::size_t x = 0; x < size_.width; ++x) {
    const std::uint8_t* from = row_ + (step_ > 0 ? x : size_.width - 1 - x) * 3;
    for (std::size_t c = 0; c < 3; ++c) {
      *into++ =
          static_cast<float>(from[c]) * format_.scale[c] + format_.bias[c];
    }
  }
}

}  // namespace leat
