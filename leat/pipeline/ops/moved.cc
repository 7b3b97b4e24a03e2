// A step reads a part of an image, its `from`, and makes another image of it:
// what lies outside of that part is cut off, and the rest goes where its pixels
// go.

#include "leat/pipeline/ops/moved.h"

#include <algorithm>

namespace leat {
namespace {

/// Where the pixels at a point of a step's part go.
Point through(const GeometryStep& step, const Point& point) {
  switch (step.kind) {
    case GeometryStep::Kind::kResize:
      return {point.x * step.to.width / step.from.width,
              point.y * step.to.height / step.from.height};
    case GeometryStep::Kind::kPad:
      return {point.x + step.pad_x, point.y + step.pad_y};
    case GeometryStep::Kind::kColour:
      break;
  }
  return point;
}

Point within(const Rect& part, const Point& point) {
  return {point.x - part.x, point.y - part.y};
}

/// What of the box lies in the part, as the part sees it.
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

bool lies_in(const Rect& part, const Point& point) {
  return point.x >= part.x && point.y >= part.y &&
         point.x - part.x <= part.width && point.y - part.y <= part.height;
}

/// Around where all corners go.
Box through(const GeometryStep& step, const Box& box) {
  const Point corners[] = {through(step, Point{box.left, box.top}),
                           through(step, Point{box.right, box.top}),
                           through(step, Point{box.left, box.bottom}),
                           through(step, Point{box.right, box.bottom})};
  Box around{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const Point& corner : corners) {
    around.left = std::min(around.left, corner.x);
    around.top = std::min(around.top, corner.y);
    around.right = std::max(around.right, corner.x);
    around.bottom = std::max(around.bottom, corner.y);
  }
  return around;
}

}  // namespace

MovedBox moved(const Geometry& geometry, const Box& box) {
  MovedBox now{box, 1};
  for (const GeometryStep& step : geometry.steps) {
    now = within(step.from, now);
    now.box = through(step, now.box);
  }
  now = within(geometry.last, now);
  if (geometry.is_flipped) {
    const double width = geometry.last.width;
    now.box = {width - now.box.right, now.box.top, width - now.box.left,
               now.box.bottom};
  }
  return now;
}

MovedPoint moved(const Geometry& geometry, const Point& point) {
  MovedPoint now{point, true};
  for (const GeometryStep& step : geometry.steps) {
    now.is_visible = now.is_visible && lies_in(step.from, now.point);
    now.point = through(step, within(step.from, now.point));
  }
  now.is_visible = now.is_visible && lies_in(geometry.last, now.point);
  now.point = within(geometry.last, now.point);
  // The last pixel's, not the edge behind it: as torchvision has it.
  if (geometry.is_flipped) now.point.x = geometry.last.width - 1 - now.point.x;
  return now;
}

}  // namespace leat
