// JPEG, by libjpeg-turbo.
#pragma once
#include <cstdint>
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

/// Baseline and progressive; grey, YCbCr, RGB, CMYK and YCCK (both taken as
/// Adobe writes them, inverted, and turned into RGB as Pillow does).
///
/// A part of an image comes out as if cut from the whole, byte for byte.
std::unique_ptr<ImageReader> make_jpeg_reader();

/// Which libjpeg-turbo it was built for: 2001005 is 2.1.5. Another one may
/// decode to other bytes.
std::uint32_t jpeg_library_version();

}  // namespace leat
