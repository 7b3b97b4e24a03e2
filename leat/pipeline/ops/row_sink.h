// The destination of rows of pixels: an image in memory or the delivered array.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/scratch.h"
#include "leat/pipeline/program/tensor.h"

namespace leat {

/// Takes rows of interleaved bytes from top to bottom.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// The place for row `y`; up to kRowSlackBytes after its end may be written
  /// too. Valid until done(y).
  virtual std::uint8_t* place(std::uint32_t y) = 0;
  virtual void done(std::uint32_t y) = 0;
  /// Row `y`, given from elsewhere; up to kRowSlackBytes after its end may be
  /// read.
  virtual void put(std::uint32_t y, const std::uint8_t* row,
                   std::size_t row_bytes) = 0;
};

/// An image in memory.
class MemorySink final : public RowSink {
 public:
  MemorySink(std::uint8_t* data, std::size_t stride_bytes)
      : data_(data), stride_bytes_(stride_bytes) {}

  std::uint8_t* place(std::uint32_t y) override {
    return data_ + y * stride_bytes_;
  }
  void done(std::uint32_t) override {}
  void put(std::uint32_t y, const std::uint8_t* row,
           std::size_t row_bytes) override {
    std::memcpy(place(y), row, row_bytes);
  }

 private:
  std::uint8_t* const data_;
  const std::size_t stride_bytes_;
};

/// The type of a channel before any op.
constexpr DType pixel_dtype(PixelMode mode) {
  return has_16_bits(mode) ? DType::kUint16 : DType::kUint8;
}

constexpr bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 ||
         dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

/// How pixels become numbers of the delivered array.
struct PixelFormat {
  DType dtype = DType::kUint8;
  PixelLayout layout = PixelLayout::kChw;
  /// Channels of the array: all of the pixel's, or 1
  std::uint32_t channels = 3;
  /// if the picture's three are equal. The pixel is the one that ops work on:
  /// 3 channels, too, if it is decoded with 1.
  std::uint32_t pixel_channels = 3;
  bool is_16_bits = false;  ///< Each channel of the pixel.
  std::array<double, 3> exact_scale = {1, 1, 1};  ///< For 16 bits as float64.
  std::array<double, 3> exact_bias = {0, 0, 0};
  /// For float32, and for all floats if the pixel has 16 bits: value * scale +
  /// bias.
  std::array<float, 3> scale = {1, 1, 1};
  std::array<float, 3> bias = {0, 0, 0};
  /// For all other types but uint8: the 256 items that a channel's values
  /// become, channel by channel. Null for those two, and if the pixel has 16
  /// bits.
  std::shared_ptr<const std::vector<std::byte>> table = nullptr;

  TensorSpec tensor(PixelSize size) const;
  std::uint32_t pixel_bytes() const {
    return pixel_channels * (is_16_bits ? 2 : 1);
  }
};

/// The table of `dtype`: value * scale + bias, in float32 for the floats of 16
/// bits, which round it to the nearest, halves to even, and else in float64.
/// REQUIRES: `dtype` is an integer of 16 bits or more, or a float.
std::shared_ptr<const std::vector<std::byte>> make_pixel_table(
    DType dtype, std::uint32_t channels, const std::array<double, 3>& scale,
    const std::array<double, 3>& bias);

/// How the picture is mirrored while it is written.
struct Mirrored {
  bool along_x = false;
  bool along_y = false;
};

/// The delivered array: casts, normalises, lays out and mirrors in one pass.
class ArraySink final : public RowSink {
 public:
  /// REQUIRES: out.size() == format.tensor(size).size_bytes(); `format`
  /// outlives
  ///           it.
  ArraySink(const PixelFormat& format, PixelSize size, Mirrored mirrored,
            Scratch& scratch, std::span<std::byte> out);

  std::uint8_t* place(std::uint32_t y) override;
  void done(std::uint32_t y) override;
  void put(std::uint32_t y, const std::uint8_t* row,
           std::size_t row_bytes) override;

 private:
  using Row = const std::uint8_t*;  // In its original order.

  void write(std::uint32_t y, Row row);
  void write_bytes(std::uint32_t y, Row row);
  void write_floats(std::uint32_t y, Row row);
  template <class Item>
  void write_items(std::uint32_t y, Row row);
  void write_16_bits(std::uint32_t y, Row row);
  template <class Item, class Convert>
  void convert_row(std::uint32_t y, Row row, const Convert& convert);
  void write_interleaved_floats(Row row, float* into);
  /// Row `y` of plane `c`, as numbered in the array.
  std::size_t plane_row(std::uint32_t c, std::uint32_t y) const;
  /// Splits the row into planes, mirrored if required.
  const std::uint8_t* planes(Row row);

  const PixelFormat& format_;
  const PixelSize size_;
  const int step_;  // 1, or -1: from right to left.
  const bool is_upside_down_;
  const std::size_t plane_stride_;
  /// Rows above this one are made in their final place.
  const std::uint32_t in_place_;
  std::uint8_t* const row_;
  std::uint8_t* const planes_;
  std::byte* const out_;
};

}  // namespace leat
