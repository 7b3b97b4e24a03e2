#include "leat/pipeline/ops/orientation.h"

#include <cstddef>

#include "leat/base/errors.h"

namespace leat {

Result<void> check_orientation(const ImageHeader& header,
                               const DecodeImageOp& decode) {
  if (decode.exif_orientation != ExifOrientation::kRefuse ||
      header.orientation == 1) {
    return {};
  }
  return corrupt(
      "its EXIF orientation is {}, so it is displayed turned or mirrored, and "
      "nothing says whether its annotations ({}) are of the picture as it is "
      "displayed or as it is stored: say DecodeImage(exif_orientation=False) "
      "for stored pixels, as Pillow, torchvision and COCO's tools give them, "
      "or exif_orientation=True for displayed ones; or save the picture "
      "upright",
      header.orientation, decode.annotated_by);
}

void turn_upright(const PixelView& stored, std::uint32_t channels,
                  Orientation orientation, std::uint8_t* into,
                  std::size_t into_stride) {
  const PixelSize upright = orientation.turned({stored.width, stored.height});
  // How far a step right or down in the upright picture goes in the stored one.
  const auto pixel = static_cast<std::ptrdiff_t>(channels);
  const auto row = static_cast<std::ptrdiff_t>(stored.stride_bytes);
  const std::ptrdiff_t right = (orientation.swaps_axes() ? row : pixel) *
                               (orientation.mirrors_x() ? -1 : 1);
  const std::ptrdiff_t down = (orientation.swaps_axes() ? pixel : row) *
                              (orientation.mirrors_y() ? -1 : 1);
  const Rect corner = orientation.to_stored({0, 0, 1, 1}, upright);
  const std::uint8_t* line = stored.data + corner.y * row + corner.x * pixel;
  for (std::uint32_t y = 0; y < upright.height; ++y) {
    const std::uint8_t* from = line;
    std::uint8_t* out = into;
    for (std::uint32_t x = 0; x < upright.width; ++x) {
      for (std::uint32_t c = 0; c < channels; ++c) *out++ = from[c];
      from += right;
    }
    line += down;
    into += into_stride;
  }
}

}  // namespace leat
