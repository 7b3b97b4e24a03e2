// PNG, by libpng.
#pragma once
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

/// Reads all depths and colour types; labels are grey or indices of up to 8
/// bits. It drops alpha and transparency. It keeps 16 bits for kRgb16 and
/// kGrey16 (colour cannot become kGrey16), else the upper 8. Colour becomes
/// grey by Pillow's weights. Ancillary chunks are skipped unread.
std::unique_ptr<ImageReader> make_png_reader();

}  // namespace leat
