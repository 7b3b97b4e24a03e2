// RandAugment and its kin: which changes are drawn for a picture. Spaces and
// policies are torchvision's.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "leat/pipeline/ops/augment_ops.h"
#include "leat/pipeline/ops/draws.h"
#include "leat/pipeline/ops/picture.h"

namespace leat {

enum class AugmentKind : std::uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert,
};

/// torchvision's name for it: "ShearX".
std::string_view to_string(AugmentKind kind);

/// One change that was drawn; `magnitude` in torchvision's units, with its
/// sign.
struct AugmentStep {
  AugmentKind kind = AugmentKind::kIdentity;
  double magnitude = 0;
};

/// The steps drawn for a picture of this size.
std::vector<AugmentStep> draw_steps(const RandAugmentOp& op,
                                    std::uint32_t width, std::uint32_t height,
                                    Draws& draws);
std::vector<AugmentStep> draw_steps(const AutoAugmentOp& op,
                                    std::uint32_t width, std::uint32_t height,
                                    Draws& draws);
std::vector<AugmentStep> draw_steps(const TrivialAugmentWideOp& op,
                                    std::uint32_t width, std::uint32_t height,
                                    Draws& draws);

struct AugMixDraw {
  /// The weight of the picture itself; all weights sum up to 1.
  double weight = 0;
  std::vector<double> weights;
  std::vector<std::vector<AugmentStep>> chains;
};
AugMixDraw draw_mix(const AugMixOp& op, std::uint32_t width,
                    std::uint32_t height, Draws& draws);

/// The change of a picture of this size that a step means. Appends nothing for
/// one that changes nothing.
void append_change(const AugmentStep& step, std::uint32_t width,
                   std::uint32_t height, const WarpStyle& style,
                   std::vector<PictureChange>& changes);

}  // namespace leat
