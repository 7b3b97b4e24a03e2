// The header of a JPEG, read without libjpeg.
#pragma once
#include "leat/codec/image/claimed_image.h"

namespace leat {

/// Walks the markers up to the first scan.
///
/// Errors:
///   kCorrupt  no frame header before the first scan, or one of size 0
Result<ClaimedImage> read_jpeg_header(std::span<const std::byte> encoded);

}  // namespace leat
