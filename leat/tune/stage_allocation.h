// The rates of stages that share cores, and the needs of each.
#pragma once
#include <limits>
#include <span>
#include <vector>

namespace leat {

/// A stage of a pipeline, in units: threads, requests in flight, loops.
struct Stage {
  /// Samples a second that one unit carries; infinite: the stage is free.
  double rate_per_unit = std::numeric_limits<double>::infinity();
  /// Units that it may have: 1 if it is sequential.
  double most_units = std::numeric_limits<double>::infinity();
  /// A unit is kept busy by a core. Requests in flight are not.
  bool takes_cores = true;
};

struct StageAllocation {
  double samples_per_second = 0;  ///< Infinite: nothing bounds it.
  std::vector<double> units;      ///< The units of each stage, in fractions.
};

/// The largest X and the units theta with X <= theta_i × rate_i, theta_i <=
/// most_i, and the theta of those that take cores at most `cores` in all.
///
/// Plumber gives this linear program to a solver. At its optimum every stage
/// has exactly theta_i = X / rate_i, or a slower X would do, so X is the least
/// of cores / sum(1 / rate_i) and each most_i × rate_i. Without bound: no
/// units.
StageAllocation allocate_stages(std::span<const Stage> stages, double cores);

}  // namespace leat
