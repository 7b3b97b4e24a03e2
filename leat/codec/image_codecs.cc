// The list of image formats, in the order in which messages list them. It has
// this file to itself: a program that defines image_codecs() in a source of its
// own has other formats, as tests/codec does.

#include "leat/codec/image_codecs.h"

#include <array>

namespace leat {

std::span<const ImageCodec* const> image_codecs() {
  static constexpr std::array kCodecs = {&kJpegCodec, &kPngCodec, &kWebpCodec,
                                         &kTiffCodec, &kNpyLabelCodec};
  return kCodecs;
}

}  // namespace leat
