// Sizes, crops and roundings are torchvision's, whose users compare.

#include "leat/pipeline/ops/geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "leat/pipeline/ops/draws.h"

namespace leat {
namespace {

constexpr int kCropTries = 10;

/// To the nearest, halves to even, as Python's round().
std::int64_t round_half_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

/// What goes to one side if the excess is shared by two.
std::uint32_t half_of_excess(std::uint32_t wanted, std::uint32_t present,
                             std::uint32_t round_up) {
  return wanted > present ? (wanted - present + round_up) / 2 : 0;
}

std::uint32_t clamped(std::int64_t value, std::uint32_t most) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(value, 1, std::int64_t{most}));
}

PixelSize size_for(const ResizeOp& op, PixelSize image) {
  if (op.shorter_side == 0) return op.size;
  const std::uint32_t shorter = std::min(image.width, image.height);
  const std::uint32_t longer = std::max(image.width, image.height);
  // A side this long is refused before anything is made of it.
  const auto scaled = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{op.shorter_side} * longer / shorter,
                              std::numeric_limits<std::uint32_t>::max()));
  return image.width <= image.height ? PixelSize{op.shorter_side, scaled}
                                     : PixelSize{scaled, op.shorter_side};
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

/// Follows the ops; what is said of x is said of the picture as the ops see it,
/// which may be flipped already.
class Planner {
 public:
  Planner(PixelSize image, const SampleRandom& random, std::uint64_t field_hash)
      : random_(random), field_hash_(field_hash) {
    plan_.last = {0, 0, image.width, image.height};
  }

  void apply(const Op& op) {
    if (const auto* resize = std::get_if<ResizeOp>(&op.params)) {
      add_resize(size_for(*resize, size()), resize->interpolation);
    } else if (const auto* centre = std::get_if<CenterCropOp>(&op.params)) {
      pad_to(centre->size);
      crop_centre(centre->size);
    } else if (const auto* random =
                   std::get_if<RandomResizedCropOp>(&op.params)) {
      crop(draw_crop(*random, size(), draws_of(op)));
      add_resize(random->size, random->interpolation);
    } else if (const auto* flip =
                   std::get_if<RandomHorizontalFlipOp>(&op.params)) {
      if (draws_of(op).uniform() < flip->p) {
        plan_.is_flipped = !plan_.is_flipped;
      }
    }
  }

  Geometry take() { return std::move(plan_); }

 private:
  PixelSize size() const { return {plan_.last.width, plan_.last.height}; }

  Draws draws_of(const Op& op) const {
    return {random_, op.index, field_hash_};
  }

  void add_resize(PixelSize to, Interpolation interpolation) {
    GeometryStep step;
    step.kind = GeometryStep::Kind::kResize;
    step.from = plan_.last;
    step.to = to;
    step.interpolation = interpolation;
    push(step);
  }

  void push(const GeometryStep& step) {
    plan_.steps.push_back(step);
    plan_.last = {0, 0, step.to.width, step.to.height};
  }

  void crop(const Rect& part) {
    const std::uint32_t x =
        plan_.is_flipped ? plan_.last.width - part.x - part.width : part.x;
    plan_.last = {plan_.last.x + x, plan_.last.y + part.y, part.width,
                  part.height};
  }

  void crop_centre(PixelSize to) {
    crop({static_cast<std::uint32_t>(
              round_half_even((size().width - to.width) / 2.0)),
          static_cast<std::uint32_t>(
              round_half_even((size().height - to.height) / 2.0)),
          to.width, to.height});
  }

  /// Makes an image that is too small large enough, with black.
  void pad_to(PixelSize least) {
    if (size().width >= least.width && size().height >= least.height) return;
    GeometryStep step;
    step.kind = GeometryStep::Kind::kPad;
    step.from = plan_.last;
    step.to = {std::max(size().width, least.width),
               std::max(size().height, least.height)};
    // Of an odd rest, the right and the lower side get the larger half.
    step.pad_x =
        half_of_excess(least.width, size().width, plan_.is_flipped ? 1 : 0);
    step.pad_y = half_of_excess(least.height, size().height, 0);
    push(step);
  }

  const SampleRandom& random_;
  const std::uint64_t field_hash_;
  Geometry plan_;
};

}  // namespace

Geometry plan_geometry(const std::vector<Op>& ops, PixelSize image,
                       const SampleRandom& random, std::uint64_t field_hash) {
  Planner planner(image, random, field_hash);
  for (const Op& op : ops) planner.apply(op);
  return planner.take();
}

std::optional<PixelSize> fixed_size_of(const std::vector<Op>& ops) {
  std::optional<PixelSize> fixed;
  for (const Op& op : ops) {
    if (const auto* resize = std::get_if<ResizeOp>(&op.params)) {
      fixed = resize->shorter_side == 0 ? std::optional(resize->size)
                                        : std::nullopt;
    } else if (const auto* centre = std::get_if<CenterCropOp>(&op.params)) {
      fixed = centre->size;
    } else if (const auto* random =
                   std::get_if<RandomResizedCropOp>(&op.params)) {
      fixed = random->size;
    }
  }
  return fixed;
}

}  // namespace leat
