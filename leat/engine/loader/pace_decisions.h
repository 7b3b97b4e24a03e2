// Turns the pace of a store that throttles into tuning decisions.
#pragma once
#include <span>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/layers/request_pace.h"
#include "leat/tune/decision.h"

namespace leat {

/// A line for the beginning of each episode, and one for its end, if it has
/// ended. The bound changes several times a second in between; metrics and
/// observations have that.
std::vector<Decision> pace_decisions(
    std::span<const RequestPace::Episode> episodes, TimePoint opened_at);

}  // namespace leat
