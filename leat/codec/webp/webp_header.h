// The header of a WebP.
#pragma once
#include "leat/codec/image/claimed_image.h"

namespace leat {

/// Reads the size and walks the chunks to the end.
///
/// Errors:
///   kCorrupt  there is no size, or it is an animation
Result<ClaimedImage> read_webp_header(std::span<const std::byte> encoded);

}  // namespace leat
