#include "leat/pipeline/ops/draw_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace leat {
namespace {

constexpr int kCropTries = 10;

std::uint32_t clamped(std::int64_t value, std::uint32_t most) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(value, 1, std::int64_t{most}));
}

/// The largest crop in the middle whose ratio is within bounds.
Rect fallback_crop(const RandomResizedCropOp& op, PixelSize image) {
  const double ratio =
      static_cast<double>(image.width) / static_cast<double>(image.height);
  PixelSize crop = image;
  if (ratio < op.ratio[0]) {
    crop.height =
        clamped(round_half_even(image.width / op.ratio[0]), image.height);
  } else if (ratio > op.ratio[1]) {
    crop.width =
        clamped(round_half_even(image.height * op.ratio[1]), image.width);
  }
  return {(image.width - crop.width) / 2, (image.height - crop.height) / 2,
          crop.width, crop.height};
}

}  // namespace

std::string to_json(const std::vector<DrawnOp>& drawn) {
  auto list = nlohmann::ordered_json::array();
  for (const DrawnOp& one : drawn) {
    nlohmann::ordered_json told = {{"op", one.op}, {"name", one.name}};
    for (const auto& [name, values] : one.values) {
      if (values.size() == 1) {
        told[name] = values[0];
      } else {
        told[name] = values;
      }
    }
    list.push_back(std::move(told));
  }
  return list.dump();
}

std::int64_t round_half_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

Rect draw_crop(const RandomResizedCropOp& op, PixelSize image, Draws draws) {
  const double area = static_cast<double>(image.width) * image.height;
  for (int i = 0; i < kCropTries; ++i) {
    const double target = area * draws.uniform(op.scale[0], op.scale[1]);
    const double aspect =
        std::exp(draws.uniform(std::log(op.ratio[0]), std::log(op.ratio[1])));
    const std::int64_t width = round_half_even(std::sqrt(target * aspect));
    const std::int64_t height = round_half_even(std::sqrt(target / aspect));
    if (width <= 0 || width > image.width || height <= 0 ||
        height > image.height) {
      continue;
    }
    const auto w = static_cast<std::uint32_t>(width);
    const auto h = static_cast<std::uint32_t>(height);
    const std::uint32_t y = draws.below(image.height - h + 1);
    const std::uint32_t x = draws.below(image.width - w + 1);
    return {x, y, w, h};
  }
  return fallback_crop(op, image);
}

/// The first three draws are for the order, by Fisher and Yates, and the next
/// four for the amounts. Changes without effect are left out.
std::vector<ColourChange> draw_jitter(const ColorJitterOp& op, Draws draws) {
  std::array<ColourKind, kJitterKinds> order = {
      ColourKind::kBrightness, ColourKind::kContrast, ColourKind::kSaturation,
      ColourKind::kHue};
  for (std::uint32_t i = kJitterKinds - 1; i > 0; --i) {
    std::swap(order[i], order[draws.below(i + 1)]);
  }
  const std::array<double, 2> bounds[] = {op.brightness, op.contrast,
                                          op.saturation, op.hue};
  double amounts[kJitterKinds];
  for (std::size_t i = 0; i < kJitterKinds; ++i) {
    amounts[i] = draws.uniform(bounds[i][0], bounds[i][1]);
  }
  std::vector<ColourChange> changes;
  for (const ColourKind kind : order) {
    const auto i = static_cast<std::size_t>(kind);
    const double none = kind == ColourKind::kHue ? 0 : 1;
    if (bounds[i][0] == none && bounds[i][1] == none) continue;
    changes.push_back({kind, amounts[i]});
  }
  return changes;
}

AffineParams draw_affine(const RandomAffineOp& op, PixelSize image,
                         Draws draws) {
  const auto moved = [&](double share, std::uint32_t side) {
    const double most = share * side;
    return static_cast<double>(round_half_even(draws.uniform(-most, most)));
  };
  AffineParams drawn;
  drawn.angle = draws.uniform(op.degrees[0], op.degrees[1]);
  drawn.translate[0] = moved(op.translate[0], image.width);
  drawn.translate[1] = moved(op.translate[1], image.height);
  drawn.scale = draws.uniform(op.scale[0], op.scale[1]);
  drawn.shear[0] = draws.uniform(op.shear[0], op.shear[1]);
  drawn.shear[1] = draws.uniform(op.shear[2], op.shear[3]);
  return drawn;
}

std::pair<std::string_view, std::string_view> name_of(ColourKind kind) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"adjust_brightness", "brightness_factor"},
      {"adjust_contrast", "contrast_factor"},
      {"adjust_saturation", "saturation_factor"},
      {"adjust_hue", "hue_factor"},
      {"rgb_to_grayscale", ""},
      {"posterize", "bits"},
      {"solarize", "threshold"},
      {"invert", ""},
      {"autocontrast", ""},
      {"equalize", ""},
      {"adjust_sharpness", "sharpness_factor"}};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace leat
