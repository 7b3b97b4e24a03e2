// What an epoch waited for, in one line.
#pragma once
#include <string>

#include "leat/engine/loader_stats.h"
#include "leat/engine/rank_limits.h"

namespace leat {

/// "waiting 14 %: storage, window capped at 64 by max_in_flight=; 128 would
/// do".
///
/// The first batch is left out: nothing was asked for before it. What "would
/// do" is what there is times elapsed / (elapsed - waited): where it is all in
/// use, twice as much of it is twice the rate (Little's law for requests).
std::string verdict_of(const EpochStats& stats, const RankLimits& limits);

}  // namespace leat
