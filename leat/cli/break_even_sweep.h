// The ways of `leat plan URL --break-even`: docs/reference/plan.md.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>

#include "leat/base/result.h"
#include "leat/plan/price.h"
#include "leat/plan/sweep.h"

namespace leat {

/// Simulates and prices the job from the bucket, through Belady's caches of the
/// sizes that `options` gives, and from a copy of all `total_bytes` on a disk
/// of each node. Returns break_even_json().
///
/// Errors: as sweep()
Result<nlohmann::ordered_json> break_even_of(const SweepOptions& options,
                                             double total_bytes,
                                             const Prices& prices,
                                             const Billing& billing,
                                             const std::string& url,
                                             const std::stop_token& stop);

}  // namespace leat
