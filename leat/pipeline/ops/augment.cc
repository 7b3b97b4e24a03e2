#include "leat/pipeline/ops/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numbers>
#include <span>

#include "leat/pipeline/ops/augment_policies.h"

namespace leat {
namespace {

using enum AugmentKind;

constexpr std::uint32_t kPolicyBins = 10;
constexpr std::uint32_t kMixBins = 10;
constexpr std::uint32_t kMostDrawnDepth = 3;

constexpr AugmentKind kRandSpace[] = {
    kIdentity,  kShearX,     kShearY,       kTranslateX, kTranslateY,
    kRotate,    kBrightness, kColor,        kContrast,   kSharpness,
    kPosterize, kSolarize,   kAutoContrast, kEqualize};
// The first nine are those without all_ops.
constexpr AugmentKind kMixSpace[] = {
    kShearX,    kShearY,   kTranslateX,   kTranslateY, kRotate,
    kPosterize, kSolarize, kAutoContrast, kEqualize,   kBrightness,
    kColor,     kContrast, kSharpness};
constexpr std::size_t kMixSpaceWithoutColour = 9;

/// The furthest that each kind goes.
struct Reach {
  double shear = 0.3;
  double translate_x = 0;  ///< Pixels.
  double translate_y = 0;
  double rotate = 30;
  double colour = 0.9;
  double posterize_from = 8;   ///< Bits: from here
  double posterize_range = 4;  ///< this many down.
};

Reach rand_reach(std::uint32_t width, std::uint32_t height) {
  return {.translate_x = 150.0 / 331.0 * width,
          .translate_y = 150.0 / 331.0 * height};
}

bool is_signed(AugmentKind kind) {
  return kind >= kShearX && kind <= kSharpness;
}

bool has_magnitude(AugmentKind kind) {
  return kind >= kShearX && kind <= kSolarize;
}

/// Number `i` of `count` from `low` to `high`, in float, from the nearer end,
/// as torch.linspace has it.
double linspace(double low, double high, std::uint32_t count, std::uint32_t i) {
  const auto first = static_cast<float>(low);
  const auto last = static_cast<float>(high);
  const float step = (last - first) / static_cast<float>(count - 1);
  const float at = i < count / 2
                       ? first + step * static_cast<float>(i)
                       : last - step * static_cast<float>(count - 1 - i);
  return at;
}

double magnitude_of(AugmentKind kind, const Reach& reach, std::uint32_t bins,
                    std::uint32_t bin) {
  switch (kind) {
    case kShearX:
    case kShearY:
      return linspace(0, reach.shear, bins, bin);
    case kTranslateX:
      return linspace(0, reach.translate_x, bins, bin);
    case kTranslateY:
      return linspace(0, reach.translate_y, bins, bin);
    case kRotate:
      return linspace(0, reach.rotate, bins, bin);
    case kBrightness:
    case kColor:
    case kContrast:
    case kSharpness:
      return linspace(0, reach.colour, bins, bin);
    case kPosterize: {
      const auto step = static_cast<float>((bins - 1) / reach.posterize_range);
      return std::nearbyint(static_cast<float>(reach.posterize_from) -
                            static_cast<float>(bin) / step);
    }
    case kSolarize:
      return linspace(1, 0, bins, bin);
    default:
      return 0;
  }
}

/// With a sign, if the kind has one and the draw says so.
AugmentStep step_of(AugmentKind kind, const Reach& reach, std::uint32_t bins,
                    std::uint32_t bin, Draws& draws) {
  AugmentStep step{kind, magnitude_of(kind, reach, bins, bin)};
  if (is_signed(kind) && draws.uniform() < 0.5)
    step.magnitude = -step.magnitude;
  return step;
}

AugmentKind draw_kind(std::span<const AugmentKind> space, Draws& draws) {
  return space[draws.below(static_cast<std::uint32_t>(space.size()))];
}

/// Weights that sum up to 1, by Dirichlet with one parameter for all.
std::vector<double> dirichlet(std::size_t count, double alpha, Draws& draws) {
  std::vector<double> weights(count);
  double sum = 0;
  for (double& weight : weights) {
    weight = draws.gamma(alpha);
    sum += weight;
  }
  for (double& weight : weights) {
    weight = sum > 0 ? weight / sum : 1.0 / static_cast<double>(count);
  }
  return weights;
}

PictureChange warped(const AffineMatrix& matrix, std::uint32_t width,
                     std::uint32_t height, const WarpStyle& style) {
  return {Warp{matrix, width, height, style.interpolation, style.fill}};
}

AffineMatrix shear_matrix(double x, double y) {
  const auto degrees = [](double magnitude) {
    return std::atan(magnitude) * 180 / std::numbers::pi;
  };
  return affine_matrix({.shear = {degrees(x), degrees(y)}}, 0, 0);
}

}  // namespace

std::string_view to_string(AugmentKind kind) {
  static constexpr std::string_view kNames[] = {
      "Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
      "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
      "Posterize", "Solarize",   "AutoContrast", "Equalize",   "Invert"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<AugmentStep> draw_steps(const RandAugmentOp& op,
                                    std::uint32_t width, std::uint32_t height,
                                    Draws& draws) {
  const Reach reach = rand_reach(width, height);
  std::vector<AugmentStep> steps;
  for (std::uint32_t i = 0; i < op.num_ops; ++i) {
    const AugmentKind kind = draw_kind(kRandSpace, draws);
    steps.push_back(
        step_of(kind, reach, op.num_magnitude_bins, op.magnitude, draws));
  }
  return steps;
}

std::vector<AugmentStep> draw_steps(const AutoAugmentOp& op,
                                    std::uint32_t width, std::uint32_t height,
                                    Draws& draws) {
  const auto policies = policies_of(op.policy);
  const Reach reach = rand_reach(width, height);
  std::vector<AugmentStep> steps;
  for (const PolicyStep& step :
       policies[draws.below(static_cast<std::uint32_t>(policies.size()))]) {
    if (draws.uniform() >= step.p) continue;
    steps.push_back(step_of(step.kind, reach, kPolicyBins, step.bin, draws));
  }
  return steps;
}

std::vector<AugmentStep> draw_steps(const TrivialAugmentWideOp& op,
                                    std::uint32_t, std::uint32_t,
                                    Draws& draws) {
  const Reach reach{.shear = 0.99,
                    .translate_x = 32,
                    .translate_y = 32,
                    .rotate = 135,
                    .colour = 0.99,
                    .posterize_range = 6};
  const AugmentKind kind = draw_kind(kRandSpace, draws);
  const std::uint32_t bin =
      has_magnitude(kind) ? draws.below(op.num_magnitude_bins) : 0;
  return {step_of(kind, reach, op.num_magnitude_bins, bin, draws)};
}

AugMixDraw draw_mix(const AugMixOp& op, std::uint32_t width,
                    std::uint32_t height, Draws& draws) {
  const Reach reach{.translate_x = width / 3.0,
                    .translate_y = height / 3.0,
                    .posterize_from = 4};
  const std::span<const AugmentKind> space =
      op.all_ops ? std::span(kMixSpace)
                 : std::span(kMixSpace).first(kMixSpaceWithoutColour);
  const std::vector<double> both = dirichlet(2, op.alpha, draws);
  AugMixDraw mix{.weight = both[0],
                 .weights = dirichlet(op.mixture_width, op.alpha, draws),
                 .chains = {}};
  for (double& weight : mix.weights) {
    weight *= both[1];
    const std::uint32_t depth =
        op.chain_depth > 0 ? op.chain_depth : 1 + draws.below(kMostDrawnDepth);
    std::vector<AugmentStep>& chain = mix.chains.emplace_back();
    for (std::uint32_t i = 0; i < depth; ++i) {
      const AugmentKind kind = draw_kind(space, draws);
      const std::uint32_t bin =
          has_magnitude(kind) ? draws.below(op.severity) : 0;
      chain.push_back(step_of(kind, reach, kMixBins, bin, draws));
    }
  }
  return mix;
}

void append_change(const AugmentStep& step, std::uint32_t width,
                   std::uint32_t height, const WarpStyle& style,
                   std::vector<PictureChange>& changes) {
  const double much = step.magnitude;
  const auto warp = [&](const AffineMatrix& matrix) {
    changes.push_back(warped(matrix, width, height, style));
  };
  const auto colour = [&](ColourKind kind, double amount = 1) {
    if (!style.is_for_labels) changes.push_back({ColourChange{kind, amount}});
  };
  const auto translate = [&](double x, double y) {
    warp(affine_matrix({.translate = {std::trunc(x), std::trunc(y)}},
                       width * 0.5, height * 0.5));
  };
  switch (step.kind) {
    case kIdentity:
      return;
    case kShearX:
      return warp(shear_matrix(much, 0));
    case kShearY:
      return warp(shear_matrix(0, much));
    case kTranslateX:
      return translate(much, 0);
    case kTranslateY:
      return translate(0, much);
    case kRotate:
      return warp(rotation_of(width, height, much, {}).matrix);
    case kBrightness:
      return colour(ColourKind::kBrightness, 1 + much);
    case kColor:
      return colour(ColourKind::kSaturation, 1 + much);
    case kContrast:
      return colour(ColourKind::kContrast, 1 + much);
    case kSharpness:
      return colour(ColourKind::kSharpness, 1 + much);
    case kPosterize:
      return colour(ColourKind::kPosterize, much);
    case kSolarize:
      return colour(ColourKind::kSolarize, 255 * much);
    case kAutoContrast:
      return colour(ColourKind::kAutoContrast);
    case kEqualize:
      return colour(ColourKind::kEqualize);
    case kInvert:
      return colour(ColourKind::kInvert);
  }
}

}  // namespace leat
