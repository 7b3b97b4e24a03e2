// The header of a WebP.
#pragma once
#include <cstddef>
#include <span>

#include "leat/codec/image/claimed_image.h"

namespace leat {

/// Reads the size and walks the chunks to the end. For an animation, the first
/// picture counts, as in Pillow.
///
/// Errors:
///   kCorrupt  there is no size, or an animation whose first picture is missing
///             or covers a part of it only
Result<ClaimedImage> read_webp_header(std::span<const std::byte> encoded);

/// The bytes to give to libwebp: all of the file; for an animation, the chunks
/// of its first picture, empty if it has none.
std::span<const std::byte> still_of_webp(std::span<const std::byte> encoded);

}  // namespace leat
