#include "leat/pipeline/ops/row_sink.h"

#include <algorithm>
#include <cstring>

#include "leat/pipeline/ops/colour_kernels.h"
#include "leat/pipeline/ops/kernels.h"
#include "leat/pipeline/ops/small_floats.h"

namespace leat {
namespace {

constexpr int kByteValues = 256;

/// How many rows may be made where they are delivered: as they are made, from
/// top to bottom, and none of the last, behind which there is no room.
std::uint32_t rows_in_place(const PixelFormat& format, PixelSize size,
                            Mirrored mirrored, std::size_t out_bytes) {
  const bool is_as_made =
      format.dtype == DType::kUint8 &&
      format.channels == format.pixel_bytes() &&
      (format.layout == PixelLayout::kHwc || format.channels == 1);
  const std::size_t row_bytes = std::size_t{size.width} * format.channels;
  if (!is_as_made || mirrored.along_x || mirrored.along_y || row_bytes == 0 ||
      out_bytes < kRowSlackBytes) {
    return 0;
  }
  return static_cast<std::uint32_t>((out_bytes - kRowSlackBytes) / row_bytes);
}

std::size_t whole_blocks(std::size_t width) {
  return (width + kPlaneBlock - 1) / kPlaneBlock * kPlaneBlock;
}

/// The items of one channel.
template <class Item, class Convert>
void append_items(std::vector<std::byte>& table, const Convert& convert) {
  for (int value = 0; value < kByteValues; ++value) {
    const Item item = convert(value);
    const auto* bytes = reinterpret_cast<const std::byte*>(&item);
    table.insert(table.end(), bytes, bytes + sizeof item);
  }
}

void append_channel(std::vector<std::byte>& table, DType dtype, double scale,
                    double bias) {
  const auto single = [scale = static_cast<float>(scale),
                       bias = static_cast<float>(bias)](int value) {
    return static_cast<float>(value) * scale + bias;
  };
  switch (dtype) {
    case DType::kFloat16:
      return append_items<std::uint16_t>(
          table, [&](int value) { return to_float16(single(value)); });
    case DType::kBfloat16:
      return append_items<std::uint16_t>(
          table, [&](int value) { return to_bfloat16(single(value)); });
    case DType::kFloat32:
      return append_items<float>(table, single);
    case DType::kFloat64:
      return append_items<double>(
          table, [&](int value) { return value * scale + bias; });
    default:
      break;
  }
  // Little-endian, and no value is negative: signs make no difference.
  const auto same = [](int value) { return value; };
  switch (size_bytes_of(dtype)) {
    case 2:
      return append_items<std::uint16_t>(table, same);
    case 4:
      return append_items<std::uint32_t>(table, same);
    default:
      return append_items<std::uint64_t>(table, same);
  }
}

}  // namespace

std::shared_ptr<const std::vector<std::byte>> make_pixel_table(
    DType dtype, std::uint32_t channels, const std::array<double, 3>& scale,
    const std::array<double, 3>& bias) {
  auto table = std::make_shared<std::vector<std::byte>>();
  table->reserve(kByteValues * channels * size_bytes_of(dtype));
  for (std::size_t c = 0; c < channels; ++c) {
    append_channel(*table, dtype, scale[c], bias[c]);
  }
  return table;
}

TensorSpec PixelFormat::tensor(PixelSize size) const {
  const std::int64_t width = size.width;
  const std::int64_t height = size.height;
  const std::int64_t depth = channels;
  if (layout == PixelLayout::kHw) return {dtype, {height, width}};
  if (layout == PixelLayout::kChw) return {dtype, {depth, height, width}};
  return {dtype, {height, width, depth}};
}

ArraySink::ArraySink(const PixelFormat& format, PixelSize size,
                     Mirrored mirrored, Scratch& scratch,
                     std::span<std::byte> out)
    : format_(format),
      size_(size),
      step_(mirrored.along_x ? -1 : 1),
      is_upside_down_(mirrored.along_y),
      plane_stride_(whole_blocks(size.width)),
      in_place_(rows_in_place(format, size, mirrored, out.size())),
      row_(scratch.row.at_least(std::size_t{size.width} * format.pixel_bytes() +
                                kRowSlackBytes)),
      planes_(scratch.planes.at_least(plane_stride_ * 3 + kRowSlackBytes)),
      out_(out.data()) {}

std::uint8_t* ArraySink::place(std::uint32_t y) {
  if (y >= in_place_) return row_;
  return reinterpret_cast<std::uint8_t*>(out_) +
         std::size_t{y} * size_.width * format_.channels;
}

void ArraySink::done(std::uint32_t y) {
  if (y >= in_place_) write(y, row_);
}

void ArraySink::put(std::uint32_t y, const std::uint8_t* row, std::size_t) {
  write(y, row);
}

void ArraySink::write(std::uint32_t y, Row row) {
  if (is_upside_down_) y = size_.height - 1 - y;
  if (format_.is_16_bits) return write_16_bits(y, row);
  if (format_.table == nullptr) {
    return format_.dtype == DType::kFloat32 ? write_floats(y, row)
                                            : write_bytes(y, row);
  }
  switch (size_bytes_of(format_.dtype)) {
    case 2:
      return write_items<std::uint16_t>(y, row);
    case 4:
      return write_items<std::uint32_t>(y, row);
    default:
      return write_items<std::uint64_t>(y, row);
  }
}

std::size_t ArraySink::plane_row(std::uint32_t c, std::uint32_t y) const {
  return (std::size_t{c} * size_.height + y) * size_.width;
}

const std::uint8_t* ArraySink::planes(Row row) {
  if (format_.pixel_channels == 3 && format_.channels == 1) {
    first_of_rgb(row, size_.width, planes_);
    if (step_ > 0) return planes_;
    mirror_row(planes_, size_.width, 1, planes_ + plane_stride_);
    return planes_ + plane_stride_;
  }
  if (format_.pixel_channels == 3) {
    split_rgb(row, size_.width, step_, planes_, plane_stride_);
    // Mirrored pixels stand at the end of their blocks.
    return step_ < 0 ? planes_ + (plane_stride_ - size_.width) : planes_;
  }
  if (step_ > 0) return row;
  mirror_row(row, size_.width, 1, planes_);
  return planes_;
}

void ArraySink::write_bytes(std::uint32_t y, Row row) {
  auto* out = reinterpret_cast<std::uint8_t*>(out_);
  const std::size_t row_bytes = std::size_t{size_.width} * format_.channels;
  if (format_.layout == PixelLayout::kHwc && format_.channels == 3) {
    std::uint8_t* into = out + y * row_bytes;
    if (step_ > 0) {
      std::memcpy(into, row, row_bytes);
    } else {
      mirror_row(row, size_.width, 3, into);
    }
    return;
  }
  const std::uint8_t* from = planes(row);
  for (std::uint32_t c = 0; c < format_.channels; ++c) {
    std::memcpy(out + plane_row(c, y), from + c * plane_stride_, size_.width);
  }
}

void ArraySink::write_floats(std::uint32_t y, Row row) {
  auto* out = reinterpret_cast<float*>(out_);
  if (format_.layout == PixelLayout::kHwc && format_.channels == 3) {
    write_interleaved_floats(row, out + std::size_t{y} * size_.width * 3);
    return;
  }
  const std::uint8_t* from = planes(row);
  for (std::uint32_t c = 0; c < format_.channels; ++c) {
    to_float(from + c * plane_stride_, size_.width, format_.scale[c],
             format_.bias[c], out + plane_row(c, y));
  }
}

void ArraySink::write_interleaved_floats(Row row, float* into) {
  for (std::size_t x = 0; x < size_.width; ++x) {
    const std::uint8_t* from = row + (step_ > 0 ? x : size_.width - 1 - x) * 3;
    for (std::size_t c = 0; c < 3; ++c) {
      *into++ =
          static_cast<float>(from[c]) * format_.scale[c] + format_.bias[c];
    }
  }
}

// One pass for every type: a value has but 256 meanings.
template <class Item>
void ArraySink::write_items(std::uint32_t y, Row row) {
  auto* out = reinterpret_cast<Item*>(out_);
  const auto* table = reinterpret_cast<const Item*>(format_.table->data());
  if (format_.layout == PixelLayout::kHwc && format_.channels == 3) {
    Item* into = out + std::size_t{y} * size_.width * 3;
    for (std::size_t x = 0; x < size_.width; ++x) {
      const std::uint8_t* from =
          row + (step_ > 0 ? x : size_.width - 1 - x) * 3;
      for (std::size_t c = 0; c < 3; ++c) {
        *into++ = table[c * kByteValues + from[c]];
      }
    }
    return;
  }
  const std::uint8_t* from = planes(row);
  for (std::uint32_t c = 0; c < format_.channels; ++c) {
    const Item* items = table + std::size_t{c} * kByteValues;
    const std::uint8_t* plane = from + c * plane_stride_;
    Item* into = out + plane_row(c, y);
    for (std::size_t x = 0; x < size_.width; ++x) into[x] = items[plane[x]];
  }
}

template <class Item, class Convert>
void ArraySink::convert_row(std::uint32_t y, Row row, const Convert& convert) {
  const std::size_t channels = format_.channels;
  const bool is_hwc = format_.layout == PixelLayout::kHwc;
  for (std::uint32_t c = 0; c < channels; ++c) {
    auto* into = reinterpret_cast<Item*>(out_) +
                 (is_hwc ? std::size_t{y} * size_.width * channels + c
                         : plane_row(c, y));
    for (std::uint32_t x = 0; x < size_.width; ++x) {
      std::uint16_t value = 0;
      const std::size_t from = step_ > 0 ? x : size_.width - 1 - x;
      std::memcpy(&value, row + (from * channels + c) * sizeof value,
                  sizeof value);
      *into = convert(value, c);
      into += is_hwc ? channels : 1;
    }
  }
}

void ArraySink::write_16_bits(std::uint32_t y, Row row) {
  const auto single = [this](std::uint16_t value, std::uint32_t c) {
    return static_cast<float>(value) * format_.scale[c] + format_.bias[c];
  };
  const auto same = [](std::uint16_t value, std::uint32_t) { return value; };
  switch (format_.dtype) {
    case DType::kFloat16:
      return convert_row<std::uint16_t>(
          y, row, [&](std::uint16_t value, std::uint32_t c) {
            return to_float16(single(value, c));
          });
    case DType::kBfloat16:
      return convert_row<std::uint16_t>(
          y, row, [&](std::uint16_t value, std::uint32_t c) {
            return to_bfloat16(single(value, c));
          });
    case DType::kFloat32:
      return convert_row<float>(y, row, single);
    case DType::kFloat64:
      return convert_row<double>(
          y, row, [&](std::uint16_t value, std::uint32_t c) {
            return value * format_.exact_scale[c] + format_.exact_bias[c];
          });
    default:
      break;
  }
  switch (size_bytes_of(format_.dtype)) {
    case 2:
      return convert_row<std::uint16_t>(y, row, same);
    case 4:
      return convert_row<std::uint32_t>(y, row, same);
    default:
      return convert_row<std::uint64_t>(y, row, same);
  }
}

}  // namespace leat
