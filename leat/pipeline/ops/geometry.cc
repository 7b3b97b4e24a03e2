// Sizes, crops and roundings are torchvision's, so that users can compare.

#include "leat/pipeline/ops/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "leat/pipeline/ops/augment.h"
#include "leat/pipeline/ops/draw_ops.h"
#include "leat/pipeline/ops/draws.h"
#include "leat/pipeline/ops/picture_op.h"
#include "leat/pipeline/ops/plan_builder.h"

namespace leat {
namespace {

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

/// Follows the ops; x refers to the picture as the ops see it, which may be
/// flipped already.
class Planner : private PlanBuilder {
 public:
  Planner(PixelSize image, const SampleRandom& random, std::uint64_t field_hash,
          std::vector<DrawnOp>* drawn = nullptr)
      : PlanBuilder(image, drawn), random_(random), field_hash_(field_hash) {}

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
    const Rect part = draw_crop(params, size(), draws_of(op));
    note(op, "crop", part);
    crop(part);
    add_resize(params.size, params.interpolation);
  }

  void apply(const Op& op, const RandomHorizontalFlipOp& flip) {
    if (draws_of(op).uniform() >= flip.p) return;
    note(op, "horizontal_flip");
    plan_.is_flipped = !plan_.is_flipped;
  }

  void apply(const Op& op, const RandomVerticalFlipOp& flip) {
    if (draws_of(op).uniform() >= flip.p) return;
    note(op, "vertical_flip");
    plan_.is_upside_down = !plan_.is_upside_down;
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
    // The rest that is missing then goes on both sides, whole, as in
    // torchvision.
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
    const Rect part{x, y, params.size.width, params.size.height};
    note(op, "crop", part);
    crop(part);
  }

  void apply(const Op&, const LetterboxOp& op) {
    const double scale =
        std::min(static_cast<double>(op.size.width) / size().width,
                 static_cast<double>(op.size.height) / size().height);
    const auto scaled = [&](std::uint32_t side, std::uint32_t most) {
      const std::int64_t wanted = round_half_even(side * scale);
      return static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(wanted, 1, most));
    };
    const PixelSize to{scaled(size().width, op.size.width),
                       scaled(size().height, op.size.height)};
    if (to != size()) add_resize(to, op.interpolation);
    pad_to(op.size, op.fill);
  }

  void apply(const Op& op, const ManyCropsOp& params) {
    const PixelSize to = params.size;
    if (to.width > size().width || to.height > size().height) {
      plan_.problem = fmt::format(
          "{} (op {}): {} x {} pixels do not fit into a picture of {} x {}; "
          "make it larger before, with resize",
          op.name, op.index, to.width, to.height, size().width, size().height);
      return;
    }
    if (params.view >= kCropPlaces) {
      bool& is_mirrored = params.is_mirrored_vertically ? plan_.is_upside_down
                                                        : plan_.is_flipped;
      is_mirrored = !is_mirrored;
    }
    const std::uint32_t place = params.view % kCropPlaces;
    if (place == kCropPlaces - 1) return crop_centre(to);
    crop({place % 2 == 0 ? 0 : size().width - to.width,
          place < 2 ? 0 : size().height - to.height, to.width, to.height});
  }

  void apply(const Op& op, const ColorJitterOp& params) {
    for (const ColourChange& one : draw_jitter(params, draws_of(op))) {
      add_colour(op, one);
    }
  }

  void apply(const Op& op, const RandomColourOp& params) {
    if (draws_of(op).uniform() < params.p) add_colour(op, params.change);
  }

  void apply(const Op& op, const GrayscaleOp& params) {
    if (draws_of(op).uniform() < params.p) {
      add_colour(op, {ColourKind::kGrey, 1});
    }
  }

  void apply(const Op& op, const GaussianBlurOp& params) {
    const Blur blur{params.kernel,
                    draws_of(op).uniform(params.sigma[0], params.sigma[1])};
    note(op, "gaussian_blur", {{"sigma", {blur.sigma}}});
    if (blur.kernel[0] / 2 >= size().width ||
        blur.kernel[1] / 2 >= size().height) {
      plan_.problem = fmt::format(
          "{} (op {}): a kernel of {} x {} pixels reaches beyond a picture of "
          "{} x {}; make pictures larger before it, or the kernel smaller",
          op.name, op.index, blur.kernel[0], blur.kernel[1], size().width,
          size().height);
      return;
    }
    change({blur}, size());
  }

  void apply(const Op& op, const PictureOpParams& params) {
    Draws draws = draws_of(op);
    std::shared_ptr<const PictureEdit> edit = params.op->draw(size(), draws);
    if (edit == nullptr) return;
    note(op, *edit);
    Edit made{std::move(edit), {plan_.is_flipped, plan_.is_upside_down}};
    if (params.is_on_array) {
      plan_.edits.push_back(std::move(made));
    } else {
      change({std::move(made)}, size());
    }
  }

  void apply(const Op& op, const RandomRotationOp& params) {
    const double degrees =
        draws_of(op).uniform(params.degrees[0], params.degrees[1]);
    note(op, "rotate", {{"angle", {degrees}}});
    const Rotation made =
        rotation_of(size().width, size().height, degrees, params);
    warp(made.matrix, {made.width, made.height}, params.style);
  }

  void apply(const Op& op, const RandomAffineOp& params) {
    const AffineParams drawn = draw_affine(params, size(), draws_of(op));
    note(op, "affine",
         {{"angle", {drawn.angle}},
          {"translate", {drawn.translate[0], drawn.translate[1]}},
          {"scale", {drawn.scale}},
          {"shear", {drawn.shear[0], drawn.shear[1]}}});
    const std::array<double, 2> center = params.style.center.value_or(
        std::array<double, 2>{size().width * 0.5, size().height * 0.5});
    warp(affine_matrix(drawn, center[0], center[1]), size(), params.style);
  }

  void apply(const Op& op, const RandAugmentOp& params) {
    add_steps(op, params);
  }
  void apply(const Op& op, const AutoAugmentOp& params) {
    add_steps(op, params);
  }
  void apply(const Op& op, const TrivialAugmentWideOp& params) {
    add_steps(op, params);
  }

  template <class Params>
  void add_steps(const Op& op, const Params& params) {
    Draws draws = draws_of(op);
    std::vector<PictureChange> changes;
    for (const AugmentStep& step :
         draw_steps(params, size().width, size().height, draws)) {
      note(op, to_string(step.kind), {{"magnitude", {step.magnitude}}});
      append_change(step, size().width, size().height, params.style, changes);
    }
    add_all(std::move(changes));
  }

  void apply(const Op& op, const AugMixOp& params) {
    Draws draws = draws_of(op);
    const AugMixDraw drawn =
        draw_mix(params, size().width, size().height, draws);
    Mix mix;
    mix.weight = static_cast<float>(drawn.weight);
    note(op, "mix", {{"weight", {drawn.weight}}, {"weights", drawn.weights}});
    for (std::size_t i = 0; i < drawn.chains.size(); ++i) {
      mix.weights.push_back(static_cast<float>(drawn.weights[i]));
      auto& changes = mix.chains.emplace_back();
      for (const AugmentStep& step : drawn.chains[i]) {
        note(op, to_string(step.kind),
             {{"magnitude", {step.magnitude}},
              {"chain", {static_cast<double>(i)}}});
        append_change(step, size().width, size().height, params.style, changes);
      }
    }
    turn_back();
    change({std::move(mix)}, size());
  }

  Draws draws_of(const Op& op) const {
    return {random_, op.index, op.drawn_for.value_or(field_hash_)};
  }

  const SampleRandom& random_;
  const std::uint64_t field_hash_;
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

std::vector<DrawnOp> drawn_by(const std::vector<Op>& ops, PixelSize image,
                              const SampleRandom& random,
                              std::uint64_t field_hash) {
  std::vector<DrawnOp> drawn;
  Planner planner(image, random, field_hash, &drawn);
  for (const Op& op : ops) planner.apply(op);
  return drawn;
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
    } else if (const auto* box = std::get_if<LetterboxOp>(&op.params)) {
      fixed = box->size;
    } else if (const auto* crops = std::get_if<ManyCropsOp>(&op.params)) {
      fixed = crops->size;
    } else if (const auto* turn = std::get_if<RandomRotationOp>(&op.params);
               turn != nullptr && turn->expand) {
      fixed = std::nullopt;
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
