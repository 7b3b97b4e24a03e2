// Checks whether a simulation can be run with its options.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/simulator.h"

namespace leat {

/// How many units there are to read.
std::uint64_t units_of(const SimulationOptions& options);

/// The cost of each unit in a tier: one entry for all alike, or one a unit.
const std::vector<std::uint64_t>& costs_of(const SimulationOptions& options);

/// Errors: kInvalidArgument and kResourceExhausted, as simulate() has them.
Result<void> check(const SimulationOptions& options);

}  // namespace leat
