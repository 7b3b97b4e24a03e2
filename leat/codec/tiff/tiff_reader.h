// TIFF to rows of pixels, by libtiff.
#pragma once
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

/// Reads what read_tiff_header() finds no fault with. 16 bits are kept for
/// kGrey16 and kRgb16, and else cut to the upper 8; alpha is dropped; where 0
/// is white, grey is turned over, but for labels, which are grey values as
/// stored; colour becomes grey by Pillow's weights.
std::unique_ptr<ImageReader> make_tiff_reader();

}  // namespace leat
