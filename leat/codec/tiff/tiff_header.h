// The header of a TIFF, read without libtiff.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "leat/codec/image/claimed_image.h"

namespace leat {

/// The most that one byte of LZW can grow to; of deflate it is less.
inline constexpr std::uint64_t kMostTiffGrowth = 3000;

/// Reads the first directory. The reader takes grey and RGB of 8 or 16 bits,
/// with alpha or without, in strips or tiles; not compressed, or by LZW,
/// deflate or PackBits. Everything else is a fault that says what it is: other
/// depths, signed numbers, floats, palettes, planes, BigTIFF, several pictures
/// in one file (smaller copies and masks of the first do not count).
///
/// Errors:
///   kCorrupt  the directory is missing, damaged or without a size
Result<ClaimedImage> read_tiff_header(std::span<const std::byte> encoded);

}  // namespace leat
