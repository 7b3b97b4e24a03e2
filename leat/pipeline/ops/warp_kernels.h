// The loops of bilinear and bicubic warps in colour, compiled for each
// instruction set.
#pragma once
#include "leat/pipeline/ops/colour.h"
#include "leat/pipeline/ops/warp.h"

namespace leat {

/// warp() with kBilinear. REQUIRES: three channels.
void warp_linear_rgb(const ColourView& from, const AffineMatrix& matrix,
                     const FillColour& fill, const ColourView& into);

/// warp() with kBicubic. REQUIRES: three channels.
void warp_cubic_rgb(const ColourView& from, const AffineMatrix& matrix,
                    const FillColour& fill, const ColourView& into);

}  // namespace leat
