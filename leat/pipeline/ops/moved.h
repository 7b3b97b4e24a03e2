// Moves boxes and points through a geometry.
#pragma once
#include "leat/pipeline/ops/geometry.h"

namespace leat {

/// In pixels from the top left corner of a picture, like all lengths here: the
/// first pixel extends from 0 to 1.
struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  double width() const { return right - left; }
  double height() const { return bottom - top; }
  double area() const { return width() * height(); }
};

/// The remaining part of a box in the picture that a geometry makes.
struct MovedBox {
  Box box;             ///< Within it.
  double visible = 1;  ///< The share of its area that was not cropped.
};
MovedBox moved(const Geometry& geometry, const Box& box);

/// A point is a pixel: after mirroring, the first one is the last.
struct MovedPoint {
  Point point;             ///< May lie outside.
  bool is_visible = true;  ///< It was not cropped.
};
MovedPoint moved(const Geometry& geometry, const Point& point);

}  // namespace leat
