// JPEG, by libjpeg-turbo.
#pragma once
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

/// Baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK (both taken as
/// Adobe writes them, inverted, and turned into RGB as Pillow does).
///
/// A part of an image comes out as if cut from the whole, byte for byte.
std::unique_ptr<ImageReader> make_jpeg_reader();

}  // namespace leat
