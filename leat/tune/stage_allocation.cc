#include "leat/tune/stage_allocation.h"

#include <algorithm>
#include <cmath>

namespace leat {

StageAllocation allocate_stages(std::span<const Stage> stages, double cores) {
  double cores_per_rate = 0;
  double most = std::numeric_limits<double>::infinity();
  for (const Stage& stage : stages) {
    if (std::isinf(stage.rate_per_unit)) continue;
    most = std::min(most, stage.most_units * stage.rate_per_unit);
    if (stage.takes_cores) cores_per_rate += 1 / stage.rate_per_unit;
  }
  if (cores_per_rate > 0) most = std::min(most, cores / cores_per_rate);
  StageAllocation found{.samples_per_second = most,
                        .units = std::vector<double>(stages.size(), 0)};
  if (std::isinf(most)) return found;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    found.units[i] = most / stages[i].rate_per_unit;
  }
  return found;
}

}  // namespace leat
