// All formats of images in one: the format is found in the bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "leat/base/result.h"
#include "leat/codec/image/image.h"

namespace leat {

/// The codec of an image by its first bytes, whatever its name says; null if
/// they are those of none.
const ImageCodec* image_codec_of(std::span<const std::byte> encoded);

/// "PNG".
std::string_view name_of(const ImageCodec& codec);

/// Reads the header and checks that the bytes may hold the image it promises.
/// Allocates nothing.
///
/// Errors:
///   kCorrupt  no image, cut short, more than `max_pixels`, or more pixels than
///             so few bytes can hold
Result<ImageHeader> read_image_header(
    std::span<const std::byte> encoded,
    std::uint64_t max_pixels = kDefaultMaxPixels);

/// A reader for all formats.
std::unique_ptr<ImageReader> make_image_reader();

}  // namespace leat
