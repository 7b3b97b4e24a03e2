// As leat/agent/wire/job_counters.h, with a row more.
#pragma once
#include "leat/agent/wire/job_counters.h"

namespace leat::counters {

inline constexpr JobCounter kStoreSeconds = {
    .name = "store_seconds",
    .unit = kSeconds,
    .counted_by = Metric::kStoreReadNanoseconds,
    .exposed_as = "leat_agent_store_seconds_total",
    .help = "Time of the job's requests in its store, taken together."};

}  // namespace leat::counters
