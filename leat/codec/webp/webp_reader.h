// WebP to rows of pixels, by libwebp.
#pragma once
#include <memory>

#include "leat/codec/image/image.h"

namespace leat {

std::unique_ptr<ImageReader> make_webp_reader();

}  // namespace leat
