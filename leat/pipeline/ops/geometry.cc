// Sizes, crops and roundings are torchvision's, whose users compare.

#include "leat/pipeline/ops/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

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

/// The first three draws are for the order, by Fisher and Yates, and the next
/// four for the amounts. What changes nothing is left out.
std::vector<ColourChange> draw_changes(const ColorJitterOp& op, Draws draws) {
  std::array<ColourKind, kColourKinds> order = {
      ColourKind::kBrightness, ColourKind::kContrast, ColourKind::kSaturation,
      ColourKind::kHue};
  for (std::uint32_t i = kColourKinds - 1; i > 0; --i) {
    std::swap(order[i], order[draws.below(i + 1)]);
  }
  const std::array<double, 2> bounds[] = {op.brightness, op.contrast,
                                          op.saturation, op.hue};
  double amounts[kColourKinds];
  for (std::size_t i = 0; i < kColourKinds; ++i) {
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

/// Follows the ops; what is said of x is said of the picture as the ops see it,
/// which may be flipped already.
class Planner {
 public:
  Planner(PixelSize image, const SampleRandom& random, std::uint64_t field_hash)
      : random_(random), field_hash_(field_hash) {
    plan_.last = {0, 0, image.width, image.height};
  }

  void apply(const Op& op) {
    std::visit([&](const auto& params) { apply(op, params); }, op.params);
  }

  PixelSize size() const { return {plan_.last.width, plan_.last.height}; }

  Geometry take() { return std::move(plan_); }

 private:
  template <class Params>
  void apply(const Op&, const Params&) {}  // Moves no pixels.

  void apply(const Op&, const ResizeOp& op) {
    add_resize(size_for(op, size()), op.interpolation);
  }

  void apply(const Op&, const CenterCropOp& op) {
    pad_to(op.size, op.fill);
    crop_centre(op.size);
  }

  void apply(const Op& op, const RandomResizedCropOp& params) {
    crop(draw_crop(params, size(), draws_of(op)));
    add_resize(params.size, params.interpolation);
  }

  void apply(const Op& op, const RandomHorizontalFlipOp& flip) {
    if (draws_of(op).uniform() < flip.p) plan_.is_flipped = !plan_.is_flipped;
  }

  void apply(const Op&, const PadOp& op) {
    if (op.least.width != 0) {
      pad_to(op.least, op.fill);
    } else {
      add_padding(op.padding, op.fill);
    }
  }

  void apply(const Op& op, const RandomCropOp& params) {
    Padding padding = params.padding;
    // What is missing then goes on both sides, whole, as torchvision has it.
    const std::uint32_t width = size().width + padding.left + padding.right;
    const std::uint32_t height = size().height + padding.top + padding.bottom;
    const std::uint32_t more_x =
        params.size.width - std::min(params.size.width, width);
    const std::uint32_t more_y =
        params.size.height - std::min(params.size.height, height);
    padding.left += more_x;
    padding.right += more_x;
    padding.top += more_y;
    padding.bottom += more_y;
    add_padding(padding, params.fill);
    Draws draws = draws_of(op);
    const std::uint32_t y = draws.below(size().height - params.size.height + 1);
    const std::uint32_t x = draws.below(size().width - params.size.width + 1);
    crop({x, y, params.size.width, params.size.height});
  }

  void apply(const Op& op, const ColorJitterOp& params) {
    GeometryStep step;
    step.kind = GeometryStep::Kind::kColour;
    step.from = plan_.last;
    step.to = size();
    step.changes = draw_changes(params, draws_of(op));
    if (!step.changes.empty()) push(step);
  }

  Draws draws_of(const Op& op) const {
    return {random_, op.index, op.drawn_for.value_or(field_hash_)};
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

  /// Makes an image that is too small large enough. Of an odd rest, the right
  /// and the lower side get the larger half.
  void pad_to(PixelSize least, const FillColour& fill) {
    add_padding({half_of_excess(least.width, size().width, 0),
                 half_of_excess(least.height, size().height, 0),
                 half_of_excess(least.width, size().width, 1),
                 half_of_excess(least.height, size().height, 1)},
                fill);
  }

  void add_padding(const Padding& padding, const FillColour& fill) {
    GeometryStep step;
    step.kind = GeometryStep::Kind::kPad;
    step.from = plan_.last;
    step.to = {size().width + padding.left + padding.right,
               size().height + padding.top + padding.bottom};
    step.pad_x = plan_.is_flipped ? padding.right : padding.left;
    step.pad_y = padding.top;
    step.fill = fill;
    if (step.to != size()) push(step);
  }

  const SampleRandom& random_;
  const std::uint64_t field_hash_;
  Geometry plan_;
};

}  // namespace

Geometry plan_geometry(const std::vector<Op>& ops, PixelSize image,
                       const SampleRandom& random, std::uint64_t field_hash,
                       std::vector<SizeAtOp>* met) {
  Planner planner(image, random, field_hash);
  for (const Op& op : ops) {
    if (met != nullptr && op.meets_siblings) {
      met->push_back({&op, planner.size()});
    }
    planner.apply(op);
  }
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
    } else if (const auto* part =
                   std::get_if<RandomResizedCropOp>(&op.params)) {
      fixed = part->size;
    } else if (const auto* crop = std::get_if<RandomCropOp>(&op.params)) {
      fixed = crop->size;
    } else if (const auto* pad = std::get_if<PadOp>(&op.params);
               pad != nullptr && fixed) {
      const Padding& more = pad->padding;
      fixed = {
          std::max(fixed->width + more.left + more.right, pad->least.width),
          std::max(fixed->height + more.top + more.bottom, pad->least.height)};
    }
  }
  return fixed;
}

}  // namespace leat
