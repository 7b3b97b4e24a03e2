// The one thing in EXIF that changes pixels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// The orientation that a block of EXIF (a TIFF header and its first directory)
/// gives, 1 to 8. 1, which is upright, if there is none or the block is
/// damaged: as everybody does, a picture is not refused for its EXIF.
std::uint8_t exif_orientation(std::span<const std::byte> tiff);

}  // namespace leat
