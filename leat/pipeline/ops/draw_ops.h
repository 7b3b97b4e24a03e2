// The draws of a chain's random ops for one picture.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/pipeline/ops/draws.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/warp.h"

namespace leat {

/// One thing that an op drew, in the words of torchvision's functional: for
/// tests, and for people who ask what became of a picture.
struct DrawnOp {
  std::size_t op = 0;  ///< Its position in the user's list.
  std::string name;    ///< "affine", "horizontal_flip", "ShearX", …
  std::vector<std::pair<std::string, std::vector<double>>> values;
};

/// As a JSON list of objects: "op", "name", and each value under its name, a
/// number if it is one alone.
std::string to_json(const std::vector<DrawnOp>& drawn);

/// To the nearest, halves to even, as Python's round().
std::int64_t round_half_even(double value);

Rect draw_crop(const RandomResizedCropOp& op, PixelSize image, Draws draws);

/// In the order in which they are made; changes without effect are left out.
std::vector<ColourChange> draw_jitter(const ColorJitterOp& op, Draws draws);

AffineParams draw_affine(const RandomAffineOp& op, PixelSize image,
                         Draws draws);

/// torchvision's functional for a change of colour, and its name for `amount`;
/// empty if it takes none.
std::pair<std::string_view, std::string_view> name_of(ColourKind kind);

}  // namespace leat
