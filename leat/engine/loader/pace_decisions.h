// Turns the pace of a store that throttles into tuning decisions.
#pragma once
#include <span>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/layers/request_pace.h"
#include "leat/tune/decision.h"

namespace leat {

/// Returns a decision for the beginning of each episode, and one for its end if
/// it has ended. In between, the bound changes several times a second; metrics
/// and observations show that.
std::vector<Decision> pace_decisions(
    std::span<const RequestPace::Episode> episodes, TimePoint opened_at);

}  // namespace leat
