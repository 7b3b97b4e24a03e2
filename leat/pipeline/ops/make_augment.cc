#include "leat/pipeline/ops/make_augment.h"

#include <fmt/format.h>

#include <array>

namespace leat {
namespace {

constexpr double kMostStrength = 1000;
constexpr double kLeastScale = 1e-6;
constexpr std::uint32_t kMostKernel = 1023;
constexpr std::uint64_t kMostBins = 10'000;
constexpr std::uint64_t kMostChanges = 64;

double probability(ParamReader& params) { return params.number("p", 0, 1); }

/// A number a for -a to a, or the bounds.
Bounds degrees_in(ParamReader& params) {
  const std::vector<double> given = params.number_list("degrees", {1, 2});
  const Bounds bounds = {given.size() == 1 ? -given[0] : given[0],
                         given.back()};
  if (bounds[0] > bounds[1]) {
    params.fail("needs degrees from 0 on, or two of them, low <= high");
  }
  return bounds;
}

std::uint32_t count_in(ParamReader& params, std::string_view name,
                       std::uint64_t least, std::uint64_t most) {
  const std::uint64_t count = params.count(name);
  if (count >= least && count <= most) return static_cast<std::uint32_t>(count);
  params.fail(fmt::format("needs {} from {} to {}", name, least, most));
  return static_cast<std::uint32_t>(least);
}

WarpStyle style_in(ParamReader& params) {
  WarpStyle style;
  style.interpolation = params.choice<Interpolation>(
      "interpolation", {{"nearest", Interpolation::kNearest},
                        {"bilinear", Interpolation::kBilinear},
                        {"bicubic", Interpolation::kBicubic}});
  style.fill = fill_in(params);
  return style;
}

WarpStyle centred_style_in(ParamReader& params) {
  WarpStyle style = style_in(params);
  const std::vector<double> center = params.number_list("center", {2});
  if (center.size() == 2) style.center = {center[0], center[1]};
  return style;
}

OpParams random_vertical_flip(ParamReader& params) {
  return RandomVerticalFlipOp{probability(params)};
}

OpParams grayscale(ParamReader& params) {
  const auto channels =
      static_cast<std::uint32_t>(params.count("num_output_channels"));
  if (channels != 1 && channels != 3) {
    params.fail("needs num_output_channels of 1 or 3");
  }
  return GrayscaleOp{channels, 1};
}

OpParams random_grayscale(ParamReader& params) {
  return GrayscaleOp{0, probability(params)};
}

OpParams gaussian_blur(ParamReader& params) {
  GaussianBlurOp op;
  const auto sizes = params.whole_numbers("kernel_size", kMostKernel, {1, 2});
  op.kernel = {sizes.front(), sizes.back()};
  if (op.kernel[0] % 2 == 0 || op.kernel[1] % 2 == 0) {
    params.fail("needs an odd kernel_size");
  }
  const std::vector<double> sigma = params.number_list("sigma", {1, 2});
  if (sigma.empty()) {
    params.fail("needs a sigma");
    return op;
  }
  op.sigma = {sigma.front(), sigma.back()};
  if (!(op.sigma[0] > 0 && op.sigma[0] <= op.sigma[1])) {
    params.fail("needs a sigma above 0, or two of them, low <= high");
  }
  return op;
}

OpParams colour_op(ParamReader& params, ColourKind kind, double amount = 1) {
  return RandomColourOp{{kind, amount}, probability(params)};
}

OpParams random_posterize(ParamReader& params) {
  const double bits = params.number("bits", 0, 8);
  if (bits != static_cast<int>(bits)) params.fail("needs whole bits, 0 to 8");
  return colour_op(params, ColourKind::kPosterize, bits);
}

OpParams random_solarize(ParamReader& params) {
  return colour_op(params, ColourKind::kSolarize,
                   params.number("threshold", 0, 255));
}

OpParams random_equalize(ParamReader& params) {
  return colour_op(params, ColourKind::kEqualize);
}

OpParams random_autocontrast(ParamReader& params) {
  return colour_op(params, ColourKind::kAutoContrast);
}

OpParams random_adjust_sharpness(ParamReader& params) {
  return colour_op(params, ColourKind::kSharpness,
                   params.number("sharpness_factor", 0, kMostStrength));
}

OpParams random_invert(ParamReader& params) {
  return colour_op(params, ColourKind::kInvert);
}

OpParams random_rotation(ParamReader& params) {
  return RandomRotationOp{degrees_in(params), params.flag("expand"),
                          centred_style_in(params)};
}

OpParams random_affine(ParamReader& params) {
  RandomAffineOp op;
  op.degrees = degrees_in(params);
  if (const auto most = params.number_list("translate", {2}); !most.empty()) {
    op.translate = {most[0], most[1]};
  }
  if (const auto scale = params.number_list("scale", {2}); !scale.empty()) {
    op.scale = {scale[0], scale[1]};
  }
  const auto shear = params.number_list("shear", {1, 2, 4});
  if (shear.size() == 1) op.shear = {-shear[0], shear[0], 0, 0};
  if (shear.size() == 2) op.shear = {shear[0], shear[1], 0, 0};
  if (shear.size() == 4) op.shear = {shear[0], shear[1], shear[2], shear[3]};
  op.style = centred_style_in(params);

  for (const double most : op.translate) {
    if (most < 0 || most > 1) params.fail("needs a translate of 0 to 1");
  }
  if (!(op.scale[0] >= kLeastScale && op.scale[0] <= op.scale[1])) {
    params.fail("needs a scale of 1e-6 or more, low <= high");
  }
  for (std::size_t i = 0; i < op.shear.size(); i += 2) {
    if (!(op.shear[i] > -90 && op.shear[i] <= op.shear[i + 1] &&
          op.shear[i + 1] < 90)) {
      params.fail("needs shears between -90 and 90 degrees, low <= high");
    }
  }
  return op;
}

OpParams rand_augment(ParamReader& params) {
  RandAugmentOp op;
  op.num_ops = count_in(params, "num_ops", 1, kMostChanges);
  op.num_magnitude_bins = count_in(params, "num_magnitude_bins", 2, kMostBins);
  op.magnitude =
      params.whole_numbers("magnitude", op.num_magnitude_bins - 1, {1})[0];
  op.style = style_in(params);
  return op;
}

OpParams auto_augment(ParamReader& params) {
  const auto policy = params.choice<AugmentPolicy>(
      "policy", {{"imagenet", AugmentPolicy::kImagenet},
                 {"cifar10", AugmentPolicy::kCifar10},
                 {"svhn", AugmentPolicy::kSvhn}});
  return AutoAugmentOp{policy, style_in(params)};
}

OpParams trivial_augment_wide(ParamReader& params) {
  return TrivialAugmentWideOp{
      count_in(params, "num_magnitude_bins", 2, kMostBins), style_in(params)};
}

OpParams aug_mix(ParamReader& params) {
  AugMixOp op;
  op.severity = count_in(params, "severity", 1, 10);
  op.mixture_width = count_in(params, "mixture_width", 1, kMostChanges);
  op.chain_depth = params.whole_numbers("chain_depth", kMostChanges, {1})[0];
  op.alpha = params.number("alpha", 1e-3, kMostStrength);
  op.all_ops = params.flag("all_ops");
  op.style = style_in(params);
  return op;
}

OpParams letterbox(ParamReader& params) {
  return LetterboxOp{params.size("size", nullptr), fill_in(params),
                     interpolation_in(params)};
}

OpParams five_crop(ParamReader& params) {
  return ManyCropsOp{params.size("size", nullptr)};
}

OpParams ten_crop(ParamReader& params) {
  return ManyCropsOp{params.size("size", nullptr), true,
                     params.flag("vertical_flip")};
}

using MakeAugment = OpParams (*)(ParamReader&);

constexpr Choice<MakeAugment> kAugmentMakers[] = {
    {"random_vertical_flip", random_vertical_flip},
    {"grayscale", grayscale},
    {"random_grayscale", random_grayscale},
    {"gaussian_blur", gaussian_blur},
    {"random_posterize", random_posterize},
    {"random_solarize", random_solarize},
    {"random_equalize", random_equalize},
    {"random_autocontrast", random_autocontrast},
    {"random_adjust_sharpness", random_adjust_sharpness},
    {"random_invert", random_invert},
    {"random_rotation", random_rotation},
    {"random_affine", random_affine},
    {"rand_augment", rand_augment},
    {"auto_augment", auto_augment},
    {"trivial_augment_wide", trivial_augment_wide},
    {"aug_mix", aug_mix},
    {"letterbox", letterbox},
    {"five_crop", five_crop},
    {"ten_crop", ten_crop},
};

}  // namespace

std::optional<OpParams> make_augment_params(std::string_view name,
                                            ParamReader& params) {
  for (const auto& [known, make] : kAugmentMakers) {
    if (known == name) return make(params);
  }
  return std::nullopt;
}

Interpolation interpolation_in(ParamReader& params) {
  return params.choice<Interpolation>("interpolation",
                                      {{"nearest", Interpolation::kNearest},
                                       {"box", Interpolation::kBox},
                                       {"bilinear", Interpolation::kBilinear},
                                       {"hamming", Interpolation::kHamming},
                                       {"bicubic", Interpolation::kBicubic},
                                       {"lanczos", Interpolation::kLanczos}});
}

FillColour fill_in(ParamReader& params) {
  const auto values = params.whole_numbers("fill", 255, {1, 3});
  FillColour fill;
  for (std::size_t c = 0; c < fill.size(); ++c) {
    fill[c] = static_cast<std::uint8_t>(values[values.size() == 1 ? 0 : c]);
  }
  return fill;
}

}  // namespace leat
