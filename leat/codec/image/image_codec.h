// The seam for formats of images: each is a folder that defines one codec, and
// a row in the list of image_codecs.cc.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "leat/base/result.h"
#include "leat/codec/image/claimed_image.h"
#include "leat/codec/image/image.h"

namespace leat {

/// A format of images: its name, its first bytes, its parser and its decoder.
struct ImageCodec {
  std::string_view name;  ///< "PNG", as messages have it.
  /// The ends of the names of files, and the names of fields that are decoded
  /// if an op names none: "png". None for a format of masks alone.
  std::span<const std::string_view> endings;
  /// Decides by the first bytes, whatever the name of the field says.
  bool (*recognizes)(std::string_view encoded) = nullptr;
  /// Allocates nothing. Errors: kCorrupt, kInvalidArgument.
  Result<ClaimedImage> (*read_header)(std::span<const std::byte> encoded) =
      nullptr;
  std::unique_ptr<ImageReader> (*make_reader)() = nullptr;
  /// False: it holds labels alone, which only masks have.
  bool has_pictures = true;
  /// How to store a picture so that decoding it takes less memory: "store the
  /// picture …".
  std::string_view stored_lighter = "smaller";
};

/// All of them, in the order in which messages list them.
std::span<const ImageCodec* const> image_codecs();

}  // namespace leat
