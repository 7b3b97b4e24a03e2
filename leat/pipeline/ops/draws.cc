#include "leat/pipeline/ops/draws.h"

#include <cmath>
#include <numbers>

namespace leat {

double Draws::gamma(double shape) {
  if (shape < 1) {
    const double share = 1 - uniform();
    return gamma(shape + 1) * std::pow(share, 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * uniform());
    const double cube = std::pow(1 + c * normal, 3);
    if (cube <= 0) continue;
    const double share = 1 - uniform();
    if (std::log(share) <
        0.5 * normal * normal + d - d * cube + d * std::log(cube)) {
      return d * cube;
    }
  }
}

}  // namespace leat
