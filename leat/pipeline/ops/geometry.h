// Which pixels become which: the ops that move pixels, as a plan.
//
// Crops cost nothing: they only narrow the work of the step before, down to the
// part that the decoder has to decode. A flip is done while the last rows are
// written. An op that needs all pixels at its place in the chain, even those
// cropped away later, is a step of its own: changes of colour, blurs, warps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "leat/codec/image/image.h"
#include "leat/pipeline/ops/draw_ops.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/picture.h"

namespace leat {

/// One image made from another.
struct GeometryStep {
  enum class Kind : std::uint8_t {
    kResize,   ///< `from` becomes `to` pixels.
    kPad,      ///< `from` goes to (`pad_x`, `pad_y`) of an image of `fill`.
    kPicture,  ///< `from`, whole, with `changes`.
  };
  Kind kind = Kind::kResize;
  Rect from;
  PixelSize to;
  Interpolation interpolation = Interpolation::kBilinear;
  std::uint32_t pad_x = 0;
  std::uint32_t pad_y = 0;
  FillColour fill = {0, 0, 0};
  std::vector<PictureChange> changes = {};
  friend bool operator==(const GeometryStep&, const GeometryStep&) = default;
};

/// Step k reads image k and makes image k + 1; image 0 is the decoded one,
/// upright. The part `last` of the last image is delivered.
struct Geometry {
  std::vector<GeometryStep> steps;
  Rect last;
  bool is_flipped = false;
  bool is_upside_down = false;
  /// Changes of the delivered array. Each is for the picture as it was mirrored
  /// at the op's place.
  std::vector<Edit> edits = {};
  /// Why the ops cannot work on this image; empty if they can.
  std::string problem = {};
  friend bool operator==(const Geometry&, const Geometry&) = default;

  /// The part of image `image` that anybody reads.
  const Rect& read_of(std::size_t image) const {
    return image < steps.size() ? steps[image].from : last;
  }
};

/// The input of an op: the size that the ops before it make.
struct SizeAtOp {
  const Op* op = nullptr;  ///< One of those that were planned.
  PixelSize size;
};

/// The effect of the ops on an image of this size. Skips ops that do not move
/// pixels. `met`, if not null, gets the sizes at all ops that meet siblings.
/// Pure.
Geometry plan_geometry(const std::vector<Op>& ops, PixelSize image,
                       const SampleRandom& random, std::uint64_t field_hash,
                       std::vector<SizeAtOp>* met = nullptr);

/// The draws of the random ops among them for such an image, in order.
std::vector<DrawnOp> drawn_by(const std::vector<Op>& ops, PixelSize image,
                              const SampleRandom& random,
                              std::uint64_t field_hash);

/// The size that the ops end in, if it does not depend on the image.
std::optional<PixelSize> fixed_size_of(const std::vector<Op>& ops);

}  // namespace leat
