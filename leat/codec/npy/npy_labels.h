// A .npy of labels, one for each pixel, as an image format.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "leat/codec/image/claimed_image.h"
#include "leat/codec/image/image.h"

namespace leat {

/// The size of a mask: an array of height and width, of whole numbers of any
/// size, or bool.
///
/// Errors:
///   kCorrupt          as read_npy_header(); an array without pixels
///   kInvalidArgument  as read_npy_header(); other dimensions or types
Result<ClaimedImage> read_npy_labels_header(std::span<const std::byte> encoded);

/// Reads labels (PixelMode::kLabels), which are 0 to 255. Another number in the
/// rows that are wanted is kCorrupt, and the message has its place.
std::unique_ptr<ImageReader> make_npy_label_reader();

}  // namespace leat
