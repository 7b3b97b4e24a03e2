// Places samples by the plan instead of by their keys or their order.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/loader/schedule.h"

namespace leat {

/// Chooses the node whose server holds each sample, by how often nodes read it.
///
/// Errors:
///   kInvalidArgument  it cannot be known, or not one server a node; as
///                     nodes_by_frequency
Result<std::shared_ptr<const std::vector<std::uint16_t>>> place_peers(
    const Job& job, const Schedule& schedule);

/// Chooses which samples each tier may hold, as CacheNeeds needs it, by the
/// order from epoch 0 on, wherever training begins. REQUIRES: choose_cache()
/// has made the options, and `job.readers` is set.
///
/// Errors: kInvalidArgument: the order cannot be known; as place_by_frequency
Result<std::vector<std::function<bool(SampleId)>>> place_in_tiers(
    const Job& job, const Schedule& schedule);

/// Errors: kInvalidArgument: samples were placed for another global batch
Result<void> check_placed_for(const Job& job, const Schedule& schedule,
                              const LoaderState& state);

}  // namespace leat
