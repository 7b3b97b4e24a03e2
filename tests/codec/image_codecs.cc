// In the place of leat/codec/image_codecs.cc: its rows, and one more.

#include "tests/codec/image_codecs.h"

#include <array>

namespace leat {

std::span<const ImageCodec* const> image_codecs() {
  static constexpr std::array kCodecs = {&kJpegCodec,     &kPngCodec,
                                         &kWebpCodec,     &kTiffCodec,
                                         &kNpyLabelCodec, &kToyCodec};
  return kCodecs;
}

}  // namespace leat
