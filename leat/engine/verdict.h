// Tells in one line what an epoch waited for.
#pragma once
#include <string>

#include "leat/engine/loader_stats.h"
#include "leat/engine/rank_limits.h"

namespace leat {

/// "waiting 14 %: storage, window capped at 64 by max_in_flight=; 128 would
/// do".
///
/// The first batch is left out: nothing was requested before it. The number
/// that "would do" is the present one times elapsed / (elapsed - waited): in
/// full use, twice as much gives twice the rate (Little's law for requests).
std::string verdict_of(const EpochStats& stats, const RankLimits& limits);

}  // namespace leat
