// The result of a format's header parser, for read_image_header().
#pragma once
#include <string>

#include "leat/codec/image/image.h"

namespace leat {

/// A header, and what is wrong with the rest; empty if nothing was found.
struct ClaimedImage {
  ImageHeader header;
  std::string fault;
};

}  // namespace leat
