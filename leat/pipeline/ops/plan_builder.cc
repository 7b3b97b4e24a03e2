#include "leat/pipeline/ops/plan_builder.h"

#include <algorithm>
#include <cmath>

#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

/// The part on one side if two sides share the excess.
std::uint32_t half_of_excess(std::uint32_t wanted, std::uint32_t present,
                             std::uint32_t round_up) {
  return wanted > present ? (wanted - present + round_up) / 2 : 0;
}

/// Whether a pixel in the middle between two goes to one of them, so that a
/// mirrored picture becomes another than the mirrored result. The other filters
/// give both the same weight, or the one at their edge none.
bool takes_one_of_two(Interpolation interpolation) {
  return interpolation == Interpolation::kNearest ||
         interpolation == Interpolation::kBox;
}

}  // namespace

void PlanBuilder::add_resize(PixelSize to, Interpolation interpolation) {
  if (takes_one_of_two(interpolation)) turn_back();
  GeometryStep step;
  step.kind = GeometryStep::Kind::kResize;
  step.from = plan_.last;
  step.to = to;
  step.interpolation = interpolation;
  push(step);
}

void PlanBuilder::add_colour(const Op& op, const ColourChange& one) {
  const auto [name, amount] = name_of(one.kind);
  if (amount.empty()) {
    note(op, name);
  } else {
    note(op, name, {{std::string(amount), {one.amount}}});
  }
  change({one}, size());
}

void PlanBuilder::warp(const AffineMatrix& matrix, PixelSize to,
                       const WarpStyle& style) {
  turn_back();
  change({Warp{matrix, to.width, to.height, style.interpolation, style.fill}},
         to);
}

void PlanBuilder::add_all(std::vector<PictureChange> changes) {
  if (changes.empty()) return;
  turn_back();
  for (PictureChange& one : changes) change(std::move(one), size());
}

void PlanBuilder::turn_back() {
  if (!plan_.is_flipped && !plan_.is_upside_down) return;
  change({Mirror{plan_.is_flipped, plan_.is_upside_down}}, size());
  plan_.is_flipped = false;
  plan_.is_upside_down = false;
}

void PlanBuilder::change(PictureChange one, PixelSize to) {
  const Rect whole{0, 0, size().width, size().height};
  if (plan_.steps.empty() || plan_.last != whole ||
      plan_.steps.back().kind != GeometryStep::Kind::kPicture ||
      plan_.steps.back().to != size()) {
    GeometryStep step;
    step.kind = GeometryStep::Kind::kPicture;
    step.from = plan_.last;
    step.to = size();
    push(step);
  }
  plan_.steps.back().changes.push_back(std::move(one));
  plan_.steps.back().to = to;
  plan_.last = {0, 0, to.width, to.height};
}

void PlanBuilder::note(const Op& op, std::string_view name, Values values) {
  if (drawn_ == nullptr) return;
  drawn_->push_back({op.index, std::string(name), std::move(values)});
}

void PlanBuilder::note(const Op& op, const PictureEdit& edit) {
  if (drawn_ == nullptr) return;
  DrawnOp drawn = edit.drawn();
  drawn.op = op.index;
  if (drawn.name.empty()) drawn.name = op.name;
  drawn_->push_back(std::move(drawn));
}

void PlanBuilder::note(const Op& op, std::string_view name) {
  note(op, name, Values());
}

void PlanBuilder::note(const Op& op, std::string_view name, const Rect& part) {
  if (drawn_ == nullptr) return;
  note(op, name,
       Values{{"top", {static_cast<double>(part.y)}},
              {"left", {static_cast<double>(part.x)}},
              {"height", {static_cast<double>(part.height)}},
              {"width", {static_cast<double>(part.width)}}});
}

void PlanBuilder::push(const GeometryStep& step) {
  plan_.steps.push_back(step);
  plan_.last = {0, 0, step.to.width, step.to.height};
}

void PlanBuilder::crop(const Rect& part) {
  const std::uint32_t x =
      plan_.is_flipped ? plan_.last.width - part.x - part.width : part.x;
  const std::uint32_t y =
      plan_.is_upside_down ? plan_.last.height - part.y - part.height : part.y;
  plan_.last = {plan_.last.x + x, plan_.last.y + y, part.width, part.height};
}

void PlanBuilder::crop_centre(PixelSize to) {
  crop({static_cast<std::uint32_t>(
            round_half_even((size().width - to.width) / 2.0)),
        static_cast<std::uint32_t>(
            round_half_even((size().height - to.height) / 2.0)),
        to.width, to.height});
}

void PlanBuilder::pad_to(PixelSize least, const FillColour& fill) {
  add_padding({half_of_excess(least.width, size().width, 0),
               half_of_excess(least.height, size().height, 0),
               half_of_excess(least.width, size().width, 1),
               half_of_excess(least.height, size().height, 1)},
              fill);
}

void PlanBuilder::add_padding(const Padding& padding, const FillColour& fill) {
  GeometryStep step;
  step.kind = GeometryStep::Kind::kPad;
  step.from = plan_.last;
  step.to = {size().width + padding.left + padding.right,
             size().height + padding.top + padding.bottom};
  step.pad_x = plan_.is_flipped ? padding.right : padding.left;
  step.pad_y = plan_.is_upside_down ? padding.bottom : padding.top;
  step.fill = fill;
  if (step.to != size()) push(step);
}

}  // namespace leat
