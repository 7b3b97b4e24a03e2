// Steps that turn a whole picture into another.
#pragma once
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "leat/codec/image/image.h"
#include "leat/pipeline/ops/augment_ops.h"
#include "leat/pipeline/ops/blur.h"
#include "leat/pipeline/ops/colour.h"
#include "leat/pipeline/ops/scratch.h"
#include "leat/pipeline/ops/warp.h"

namespace leat {

class PictureEdit;  // picture_op.h

struct Warp {
  AffineMatrix matrix = {};
  std::uint32_t width = 0;  ///< The width of the result.
  std::uint32_t height = 0;
  Interpolation interpolation = Interpolation::kNearest;
  FillColour fill = {0, 0, 0};
  friend bool operator==(const Warp&, const Warp&) = default;
};

/// Mirrors along x, along y, or both.
struct Mirror {
  bool along_x = false;
  bool along_y = false;
  friend bool operator==(const Mirror&, const Mirror&) = default;
};

/// The change of an op of picture_op.h, on a picture that is mirrored later:
/// for the op, it is so already.
struct Edit {
  std::shared_ptr<const PictureEdit> edit;
  Mirror mirrored;
  friend bool operator==(const Edit&, const Edit&) = default;
};

struct PictureChange;

/// The weighted sum of the picture and what several chains make from it.
struct Mix {
  float weight = 0;  ///< The weight of the picture itself.
  std::vector<float> weights;
  std::vector<std::vector<PictureChange>>
      chains;  ///< One for each weight; none changes the size.
  bool operator==(const Mix& other) const;
};

struct PictureChange {
  std::variant<ColourChange, Warp, Blur, Edit, Mirror, Mix> what;
  friend bool operator==(const PictureChange&, const PictureChange&) = default;
};

inline bool Mix::operator==(const Mix& other) const {
  return weight == other.weight && weights == other.weights &&
         chains == other.chains;
}

/// Whether each new pixel depends only on the old one.
bool are_of_single_pixels(std::span<const PictureChange> changes);

/// Makes such changes one after another, in place.
/// REQUIRES: are_of_single_pixels(changes)
void change_colours(const ColourView& picture,
                    std::span<const PictureChange> changes);

/// Makes the changes one after another, in `picture` or in the scratch's
/// memory. Rows of `picture` must have kRowSlackBytes after their end.
///
/// Returns the place of the last picture: valid until the scratch is used
/// again, and as long as `picture`.
ColourView change_picture(const ColourView& picture,
                          std::span<const PictureChange> changes,
                          Scratch& scratch);

}  // namespace leat
