// Checks that a simulation can run with its options.
#pragma once
#include <cstdint>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/simulator.h"

namespace leat {

/// The number of units to read.
std::uint64_t units_of(const SimulationOptions& options);

/// The cost of each unit in a tier: a single entry for all, or one for each.
const std::vector<std::uint64_t>& costs_of(const SimulationOptions& options);

/// Errors: kInvalidArgument and kResourceExhausted, as in simulate().
Result<void> check(const SimulationOptions& options);

/// The error of a simulation whose token was stopped.
Error simulation_stopped();

}  // namespace leat
