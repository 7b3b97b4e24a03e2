// The image formats of this module, each defined in its own folder.
#pragma once
#include "leat/codec/image/image_codec.h"

namespace leat {

extern const ImageCodec kJpegCodec;
extern const ImageCodec kPngCodec;
extern const ImageCodec kWebpCodec;
extern const ImageCodec kTiffCodec;
extern const ImageCodec kNpyLabelCodec;

}  // namespace leat
