// The one thing in EXIF that changes pixels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// The orientation, 1 to 8, that a block of EXIF (a TIFF header and its first
/// directory) gives. Returns 1, which is upright, if there is none or the block
/// is damaged: like other decoders, we never refuse a picture for its EXIF.
std::uint8_t exif_orientation(std::span<const std::byte> tiff);

}  // namespace leat
