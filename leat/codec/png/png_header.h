// The header of a PNG, read without libpng.
#pragma once
#include "leat/codec/image/claimed_image.h"

namespace leat {

/// Reads IHDR and walks the chunks to IEND.
///
/// Errors:
///   kCorrupt  IHDR is missing or damaged
Result<ClaimedImage> read_png_header(std::span<const std::byte> encoded);

}  // namespace leat
