#include "leat/pipeline/ops/picture_op.h"

namespace leat {

PictureValues PictureValues::mirrored(Mirror how) const {
  PictureValues turned = *this;
  if (how.along_x) {
    turned.first = turned.at(size.width - 1, 0, 0);
    turned.column_step = -column_step;
  }
  if (how.along_y) {
    turned.first = turned.at(0, size.height - 1, 0);
    turned.row_step = -row_step;
  }
  return turned;
}

PictureValues values_in(const PixelFormat& format, PixelSize size,
                        std::span<std::byte> out) {
  const auto item = static_cast<std::ptrdiff_t>(size_bytes_of(format.dtype));
  const bool is_hwc = format.layout == PixelLayout::kHwc;
  PictureValues values;
  values.first = out.data();
  values.dtype = format.dtype;
  values.size = size;
  values.channels = format.channels;
  values.column_step = is_hwc ? item * format.channels : item;
  values.row_step = values.column_step * size.width;
  values.channel_step = is_hwc ? item : values.row_step * size.height;
  return values;
}

}  // namespace leat
