// Affine warps: which pixel comes from where, and the loops that fetch it. The
// matrices are torchvision's, the pixels Pillow's (Image.transform), byte for
// byte.
#pragma once
#include <array>
#include <cstdint>

#include "leat/pipeline/ops/augment_ops.h"
#include "leat/pipeline/ops/colour.h"

namespace leat {

/// From the middle of a pixel of the result, (x, y), to a place in the source:
/// (m0 x + m1 y + m2, m3 x + m4 y + m5).
using AffineMatrix = std::array<double, 6>;

/// The draws of RandomAffine. Degrees are clockwise, shears in degrees.
struct AffineParams {
  double angle = 0;
  std::array<double, 2> translate = {0, 0};
  double scale = 1;
  std::array<double, 2> shear = {0, 0};
};

/// REQUIRES: scale > 0.
AffineMatrix affine_matrix(const AffineParams& params, double center_x,
                           double center_y);

/// A rotation by `degrees`, counter-clockwise, of a picture of this size, and
/// the size of the result: the same, or if `expand` such that all fits.
struct Rotation {
  AffineMatrix matrix = {};
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};
Rotation rotation_of(std::uint32_t width, std::uint32_t height, double degrees,
                     const RandomRotationOp& op);

/// Fills `into`: with `from` as the matrix has it, with `fill` where that lies
/// outside. Reads and writes up to 4 bytes behind the end of a row.
///
/// REQUIRES: as many channels; the interpolation is nearest, bilinear or
/// bicubic.
void warp(const ColourView& from, const AffineMatrix& matrix,
          Interpolation interpolation, const FillColour& fill,
          const ColourView& into);

}  // namespace leat
