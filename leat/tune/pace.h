// The paces that the nodes of one job tell each other.
#pragma once
#include <algorithm>

#include "leat/tune/job_speed.h"

namespace leat {

/// The pace of a job of several nodes, on one of them or on some, in samples a
/// second. Its ranks go in step, so it reaches the least over its nodes.
struct Pace {
  /// That this node would give it if all others could follow.
  double offered = kUnbounded;
  /// With the share that it has now.
  double reached = kUnbounded;
  /// The ceiling of its training, as it was measured: too low if training waits
  /// for other ranks, so the highest is the truth.
  double ceiling = kUnbounded;

  bool operator==(const Pace&) const = default;
};

/// The pace of two sets of nodes together.
inline Pace joined(const Pace& a, const Pace& b) {
  return {.offered = std::min(a.offered, b.offered),
          .reached = std::min(a.reached, b.reached),
          .ceiling = std::max(a.ceiling, b.ceiling)};
}

/// The pace of many ranks from that of one; or, with 1 / count, of one from
/// that of many.
inline Pace scaled(const Pace& pace, double factor) {
  return {.offered = pace.offered * factor,
          .reached = pace.reached * factor,
          .ceiling = pace.ceiling * factor};
}

}  // namespace leat
