// A policy that gets times on a job's clock, and needs lengths of time.
#pragma once
#include <cstdint>
#include <memory>

#include "leat/plan/cache_policy.h"

namespace leat {

/// Passes times to `policy` that are `epoch_reads` apart between epochs instead
/// of kEpochTime, so that differences count reads. Times after all reads, just
/// before kNever, become never.
std::unique_ptr<CachePolicy> make_epoch_times_policy(
    std::unique_ptr<CachePolicy> policy, std::uint64_t epoch_reads);

}  // namespace leat
