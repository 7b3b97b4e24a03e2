// JPEG, by libjpeg-turbo.
#pragma once
#include <cstdint>
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

/// Makes a reader for baseline and progressive JPEG in grey, YCbCr, RGB, CMYK
/// or YCCK. It takes CMYK and YCCK as Adobe writes them, inverted, and turns
/// them into RGB as Pillow does.
///
/// A part of an image is decoded to the same bytes as if it were cut
/// from the whole image.
std::unique_ptr<ImageReader> make_jpeg_reader();

/// Which libjpeg-turbo it was built for: 2001005 is 2.1.5. Another one may
/// decode to other bytes.
std::uint32_t jpeg_library_version();

}  // namespace leat
