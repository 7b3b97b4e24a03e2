// EXIF orientations: mirror, then perhaps swap the axes.
#pragma once
#include <cstdint>

#include "leat/base/result.h"
#include "leat/codec/image/image.h"
#include "leat/pipeline/ops/op.h"

namespace leat {

/// How an upright picture is stored: orientation 1 to 8.
class Orientation {
 public:
  explicit Orientation(std::uint8_t exif) : exif_(exif) {}

  bool is_upright() const { return exif_ == 1; }
  bool swaps_axes() const { return exif_ >= 5; }
  /// In the upright picture, before axes are swapped.
  bool mirrors_x() const {
    return exif_ == 2 || exif_ == 3 || exif_ == 6 || exif_ == 7;
  }
  bool mirrors_y() const {
    return exif_ == 3 || exif_ == 4 || exif_ == 7 || exif_ == 8;
  }

  /// Width and height after turning to or from upright.
  PixelSize turned(PixelSize size) const {
    return swaps_axes() ? PixelSize{size.height, size.width} : size;
  }

  /// The stored place of a part of the upright picture, whose size is
  /// `upright`.
  Rect to_stored(Rect part, PixelSize upright) const {
    if (mirrors_x()) part.x = upright.width - part.x - part.width;
    if (mirrors_y()) part.y = upright.height - part.y - part.height;
    if (swaps_axes()) return {part.y, part.x, part.height, part.width};
    return part;
  }

 private:
  std::uint8_t exif_;
};

/// A mask, boxes or points lie in the picture as it is displayed or as it is
/// stored, and no file says which.
///
/// Errors:
///   kCorrupt  the two differ, and the user has not said which
Result<void> check_orientation(const ImageHeader& header,
                               const DecodeImageOp& decode);

/// A picture in memory.
struct PixelView {
  const std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

/// Copies `stored` upright into rows that are `into_stride` apart.
void turn_upright(const PixelView& stored, std::uint32_t channels,
                  Orientation orientation, std::uint8_t* into,
                  std::size_t into_stride);

}  // namespace leat
