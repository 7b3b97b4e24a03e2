// The parameters of the ops that augment pictures. Names and meanings are
// torchvision's (transforms.v2), if it has the op.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "leat/pipeline/ops/colour.h"
#include "leat/pipeline/ops/weights.h"

namespace leat {

/// The bytes of a pixel; for a grey one, the first.
using FillColour = std::array<std::uint8_t, 3>;

/// Lowest and highest.
using Bounds = std::array<double, 2>;

struct RandomVerticalFlipOp {
  double p = 0.5;
};

/// One change of colour, made with a probability: RandomPosterize and so on.
struct RandomColourOp {
  ColourChange change;
  double p = 0.5;
};

/// Grayscale and RandomGrayscale.
struct GrayscaleOp {
  std::uint32_t channels = 0;  ///< 1 or 3; 0: as many as there are.
  double p = 1;
};

struct GaussianBlurOp {
  std::array<std::uint32_t, 2> kernel = {3, 3};  ///< Width and height, odd.
  Bounds sigma = {0.1, 2.0};
};

/// The style of a warp by any angle.
struct WarpStyle {
  Interpolation interpolation = Interpolation::kNearest;
  FillColour fill = {0, 0, 0};
  std::optional<std::array<double, 2>> center;  ///< x and y; none: the middle.
  bool is_for_labels = false;  ///< For labels: their numbers are not colours.
};

struct RandomRotationOp {
  Bounds degrees = {0, 0};  ///< Counter-clockwise.
  bool expand = false;
  WarpStyle style;
};

struct RandomAffineOp {
  Bounds degrees = {0, 0};                   ///< Clockwise.
  std::array<double, 2> translate = {0, 0};  ///< At most, of width and height.
  Bounds scale = {1, 1};
  std::array<double, 4> shear = {0, 0, 0, 0};  ///< Bounds of x, then of y.
  WarpStyle style;
};

struct RandAugmentOp {
  std::uint32_t num_ops = 2;
  std::uint32_t magnitude = 9;
  std::uint32_t num_magnitude_bins = 31;
  WarpStyle style;
};

enum class AugmentPolicy : std::uint8_t { kImagenet, kCifar10, kSvhn };

struct AutoAugmentOp {
  AugmentPolicy policy = AugmentPolicy::kImagenet;
  WarpStyle style;
};

struct TrivialAugmentWideOp {
  std::uint32_t num_magnitude_bins = 31;
  WarpStyle style;
};

struct AugMixOp {
  std::uint32_t severity = 3;
  std::uint32_t mixture_width = 3;
  std::uint32_t chain_depth = 0;  ///< 0: drawn, 1 to 3.
  double alpha = 1;
  bool all_ops = true;
  WarpStyle style;
};

}  // namespace leat
