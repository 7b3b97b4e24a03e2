// PNG, by libpng.
#pragma once
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

/// All depths and colour types, but for labels, which are grey or indices of up
/// to 8 bits. Alpha and transparency are dropped; 16 bits are kept for kRgb16
/// and kGrey16, which colour cannot become, and else cut to the upper 8; colour
/// becomes grey by Pillow's weights. Ancillary chunks are passed over unread.
std::unique_ptr<ImageReader> make_png_reader();

}  // namespace leat
