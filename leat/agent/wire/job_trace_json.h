// Inside: a trace in messages.
#pragma once
#include <nlohmann/json.hpp>

#include "leat/agent/wire/job_trace.h"
#include "leat/base/result.h"

namespace leat {

nlohmann::ordered_json json_of(const JobTrace& trace);

/// Errors:
///   kInvalidArgument  another type, an impossible number, or more of them
///                     than there may be: says which
Result<JobTrace> read_trace(const nlohmann::ordered_json& json);

}  // namespace leat
