// A policy that is told times by the clock of a job, and goes by lengths.
#pragma once
#include <cstdint>
#include <memory>

#include "leat/plan/cache_policy.h"

namespace leat {

/// Tells `policy` times that are `epoch_reads` apart from one epoch to the next
/// instead of kEpochTime, so that their differences are numbers of reads. Times
/// behind all reads, just before kNever, become never.
std::unique_ptr<CachePolicy> make_epoch_times_policy(
    std::unique_ptr<CachePolicy> policy, std::uint64_t epoch_reads);

}  // namespace leat
