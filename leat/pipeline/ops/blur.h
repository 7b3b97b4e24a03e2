// Gaussian blur with torchvision's kernel: the border is mirrored, its
// outermost pixels are not repeated.
#pragma once
#include <array>
#include <cstdint>

#include "leat/pipeline/ops/colour.h"
#include "leat/pipeline/ops/scratch.h"

namespace leat {

struct Blur {
  std::array<std::uint32_t, 2> kernel = {3, 3};  ///< Width and height, odd.
  double sigma = 1;
  friend bool operator==(const Blur&, const Blur&) = default;
};

/// Blurs the picture, along x and then along y, each rounded to bytes: to
/// within one level of both at once. Writes up to kRowSlackBytes behind each
/// row.
///
/// REQUIRES: half a kernel is shorter than the side of the picture.
void blur(const ColourView& picture, const Blur& blur, Scratch& scratch);

}  // namespace leat
