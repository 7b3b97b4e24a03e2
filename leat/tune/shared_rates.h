// The speeds of jobs side by side, in the simulator.
#pragma once
#include <vector>

#include "leat/tune/allocation.h"
#include "leat/tune/job_speed.h"

namespace leat {

/// Rates when each resource is divided by demand: no job is held below an equal
/// part that it could use, and others get what it leaves.
std::vector<double> rates_by_demand(const NodeResources& node,
                                    const std::vector<Claim>& claims);

/// Rates under grants. If more threads are granted than there are, all that use
/// theirs lose alike; bandwidth that is granted too often is divided by demand.
std::vector<double> rates_of(const NodeResources& node,
                             const std::vector<Claim>& claims,
                             const std::vector<Grant>& grants);

/// Gives threads to the jobs in which they gain most, with all else in equal
/// parts: A-Dloader's division.
std::vector<Grant> workers_only(const NodeResources& node,
                                const std::vector<Claim>& claims);

/// The best rates of threads that can be split, in the order of `claims`.
///
/// REQUIRES: something bounds each claim.
std::vector<double> split_rates(const NodeResources& node,
                                const std::vector<Claim>& claims,
                                const AllocationOptions& options);

}  // namespace leat
