// The result of a format's header parser, for read_image_header().
#pragma once
#include <string>

#include "leat/codec/image/image.h"

namespace leat {

/// A header, and the fault in the rest; empty if none was found.
struct ClaimedImage {
  ImageHeader header;
  std::string fault;
};

}  // namespace leat
