// CoorDL's MinIO: samples that are held stay.
#pragma once
#include <memory>

#include "leat/plan/cache_policy.h"

namespace leat {

/// Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB
/// 2021: every item is used once an epoch, so it does not matter which are kept
/// as long as they stay. `spec.planned` says which ones this tier may keep.
std::unique_ptr<CachePolicy> make_never_evict_policy(
    const CachePolicySpec& spec);

}  // namespace leat
