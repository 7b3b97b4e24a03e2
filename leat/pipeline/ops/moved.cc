// A step reads a part of an image, its `from`, and makes another image of it:
// everything outside of that part is cut off, and the rest goes where its
// pixels go.

#include "leat/pipeline/ops/moved.h"

#include <algorithm>

namespace leat {
namespace {

/// The place to which the pixels at a point of a step's part go.
Point through(const GeometryStep& step, const Point& point) {
  switch (step.kind) {
    case GeometryStep::Kind::kResize:
      return {point.x * step.to.width / step.from.width,
              point.y * step.to.height / step.from.height};
    case GeometryStep::Kind::kPad:
      return {point.x + step.pad_x, point.y + step.pad_y};
    case GeometryStep::Kind::kPicture:
      break;  // See Changes.
  }
  return point;
}

Point within(const Rect& part, const Point& point) {
  return {point.x - part.x, point.y - part.y};
}

/// The part of the box that lies in `part`, in the coordinates of that.
MovedBox within(const Rect& part, const MovedBox& whole) {
  const Point first = within(part, Point{whole.box.left, whole.box.top});
  const Point last = within(part, Point{whole.box.right, whole.box.bottom});
  const double width = part.width;
  const double height = part.height;
  MovedBox cut{
      {std::clamp(first.x, 0.0, width), std::clamp(first.y, 0.0, height),
       std::clamp(last.x, 0.0, width), std::clamp(last.y, 0.0, height)},
      whole.visible};
  const double area = whole.box.area();
  cut.visible *= area > 0 ? cut.box.area() / area : 1;
  return cut;
}

/// A point is a pixel: the edge behind the last one is outside, as in
/// torchvision's `sanitize_keypoints`.
bool lies_in(const Rect& part, const Point& point) {
  return point.x >= part.x && point.y >= part.y &&
         point.x - part.x < part.width && point.y - part.y < part.height;
}

/// Around where all corners go.
template <class Where>
Box box_through(const Where& where, const Box& box) {
  const Point corners[] = {
      where(Point{box.left, box.top}), where(Point{box.right, box.top}),
      where(Point{box.left, box.bottom}), where(Point{box.right, box.bottom})};
  Box around{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const Point& corner : corners) {
    around.left = std::min(around.left, corner.x);
    around.top = std::min(around.top, corner.y);
    around.right = std::max(around.right, corner.x);
    around.bottom = std::max(around.bottom, corner.y);
  }
  return around;
}

/// The place to which a warp moves a point that it reads: the inverse of its
/// matrix, which is never flat.
Point through(const Warp& warp, const Point& point) {
  const AffineMatrix& m = warp.matrix;
  const double x = point.x - m[2];
  const double y = point.y - m[5];
  const double size = m[0] * m[4] - m[1] * m[3];
  return {(m[4] * x - m[1] * y) / size, (m[0] * y - m[3] * x) / size};
}

/// A point is a pixel, as torchvision has it: mirrored, the first one is the
/// last. The corner of a box is an edge.
constexpr double kPixel = 1;
constexpr double kEdge = 0;

Point through(const Mirror& mirror, PixelSize size, double wide,
              const Point& point) {
  return {mirror.along_x ? size.width - wide - point.x : point.x,
          mirror.along_y ? size.height - wide - point.y : point.y};
}

Mirror mirrored_at_the_end(const Geometry& geometry) {
  return {geometry.is_flipped, geometry.is_upside_down};
}

PixelSize size_of(const Geometry& geometry) {
  return {geometry.last.width, geometry.last.height};
}

/// Calls `moves(where)` for each change of a step that moves pixels, with its
/// effect on a point, and `cuts(part)` with the part that is visible behind it.
template <class Moves, class Cuts>
void for_each_move(const GeometryStep& step, double wide, const Moves& moves,
                   const Cuts& cuts) {
  PixelSize size{step.from.width, step.from.height};
  for (const PictureChange& change : step.changes) {
    if (const auto* mirror = std::get_if<Mirror>(&change.what)) {
      moves([&](const Point& at) { return through(*mirror, size, wide, at); });
    } else if (const auto* warp = std::get_if<Warp>(&change.what)) {
      moves([&](const Point& at) { return through(*warp, at); });
      size = {warp->width, warp->height};
      cuts(Rect{0, 0, size.width, size.height});
    }
  }
}

}  // namespace

MovedBox moved(const Geometry& geometry, const Box& box) {
  MovedBox now{box, 1};
  for (const GeometryStep& step : geometry.steps) {
    now = within(step.from, now);
    now.box = box_through([&](const Point& at) { return through(step, at); },
                          now.box);
    for_each_move(
        step, kEdge,
        [&](const auto& where) { now.box = box_through(where, now.box); },
        [&](const Rect& part) { now = within(part, now); });
  }
  now = within(geometry.last, now);
  now.box = box_through(
      [&](const Point& at) {
        return through(mirrored_at_the_end(geometry), size_of(geometry), kEdge,
                       at);
      },
      now.box);
  return now;
}

MovedPoint moved(const Geometry& geometry, const Point& point) {
  MovedPoint now{point, true};
  for (const GeometryStep& step : geometry.steps) {
    now.is_visible = now.is_visible && lies_in(step.from, now.point);
    now.point = through(step, within(step.from, now.point));
    for_each_move(
        step, kPixel, [&](const auto& where) { now.point = where(now.point); },
        [&](const Rect& part) {
          now.is_visible = now.is_visible && lies_in(part, now.point);
        });
  }
  now.is_visible = now.is_visible && lies_in(geometry.last, now.point);
  now.point = within(geometry.last, now.point);
  now.point = through(mirrored_at_the_end(geometry), size_of(geometry), kPixel,
                      now.point);
  return now;
}

}  // namespace leat
