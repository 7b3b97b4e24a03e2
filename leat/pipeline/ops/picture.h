// Steps that take a whole picture and give one.
#pragma once
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

struct Warp {
  AffineMatrix matrix = {};
  std::uint32_t width = 0;  ///< The width of the result.
  std::uint32_t height = 0;
  Interpolation interpolation = Interpolation::kNearest;
  FillColour fill = {0, 0, 0};
  friend bool operator==(const Warp&, const Warp&) = default;
};

/// One colour over a part.
struct Erase {
  Rect part;
  FillColour fill = {0, 0, 0};
  friend bool operator==(const Erase&, const Erase&) = default;
};

/// Mirrors along x, along y, or both.
struct Mirror {
  bool along_x = false;
  bool along_y = false;
  friend bool operator==(const Mirror&, const Mirror&) = default;
};

struct PictureChange;

/// The picture and what several chains make of it, weighted and summed.
struct Mix {
  float weight = 0;  ///< The weight of the picture itself.
  std::vector<float> weights;
  std::vector<std::vector<PictureChange>>
      chains;  ///< As many; no size changes.
  bool operator==(const Mix& other) const;
};

struct PictureChange {
  std::variant<ColourChange, Warp, Blur, Erase, Mirror, Mix> what;
  friend bool operator==(const PictureChange&, const PictureChange&) = default;
};

inline bool Mix::operator==(const Mix& other) const {
  return weight == other.weight && weights == other.weights &&
         chains == other.chains;
}

/// Whether each pixel alone decides what becomes of it.
bool are_of_single_pixels(std::span<const PictureChange> changes);

/// Makes such changes one after another, where the picture lies.
/// REQUIRES: are_of_single_pixels(changes)
void change_colours(const ColourView& picture,
                    std::span<const PictureChange> changes);

/// Makes the changes one after another, of `picture` or of memory of the
/// scratch. Rows of `picture` have kRowSlackBytes behind their end.
///
/// Returns where the last one's picture lies: valid until the scratch is used
/// again, and as long as `picture`.
ColourView change_picture(const ColourView& picture,
                          std::span<const PictureChange> changes,
                          Scratch& scratch);

}  // namespace leat
