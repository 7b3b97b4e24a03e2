// Finds a place of a picture among the middles of its pixels.
#pragma once
#include <cstdint>

namespace leat {

/// In one dimension. Pixel i has its middle at i + 0.5.
///
/// REQUIRES: a place is at most 0.5 below 0.
struct PlaceBetween {
  explicit PlaceBetween(double at) {
    const double from_middle = at - 0.5;
    before = static_cast<std::int64_t>(from_middle);
    before -= from_middle < static_cast<double>(before) ? 1 : 0;
    part = from_middle - static_cast<double>(before);
  }

  std::int64_t before;  ///< The last pixel whose middle is not behind it.
  double part;          ///< The way from there to the next middle, below 1.
};

}  // namespace leat
