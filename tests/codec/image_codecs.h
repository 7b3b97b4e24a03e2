// As leat/codec/image_codecs.h, with a line more.
#pragma once
#include "leat/codec/image_codecs.h"

namespace leat {

extern const ImageCodec kToyCodec;

}  // namespace leat
