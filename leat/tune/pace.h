// The paces that the nodes of one job exchange.
#pragma once
#include <algorithm>

#include "leat/tune/job_speed.h"

namespace leat {

/// The pace of a job of several nodes, on one or some of them, in samples a
/// second. Its ranks run in step, so it reaches the lowest pace of its nodes.
struct Pace {
  /// This node's, if all others could keep up.
  double offered = kUnbounded;
  /// With its present share.
  double reached = kUnbounded;
  /// The ceiling of its training, as measured: too low if training waits for
  /// other ranks, so the highest is right.
  double ceiling = kUnbounded;

  bool operator==(const Pace&) const = default;
};

/// The pace of two sets of nodes together.
inline Pace joined(const Pace& a, const Pace& b) {
  return {.offered = std::min(a.offered, b.offered),
          .reached = std::min(a.reached, b.reached),
          .ceiling = std::max(a.ceiling, b.ceiling)};
}

/// The pace of many ranks from that of one or, with 1 / count, the
/// reverse.
inline Pace scaled(const Pace& pace, double factor) {
  return {.offered = pace.offered * factor,
          .reached = pace.reached * factor,
          .ceiling = pace.ceiling * factor};
}

}  // namespace leat
