// Belady's rule with bypass, over all the future or over a window of it.
#pragma once
#include <memory>

#include "leat/plan/cache_policy.h"

namespace leat {

/// Uses `window` or more after now count as none; a sample without a use is not
/// held. A window of kNever sees everything.
///
/// Sizes may differ: samples used later than the new one are dropped, furthest
/// first, until it fits; if they are not enough, it is refused and nothing is
/// dropped. (With equal sizes that is optimal; with others, the usual greedy.)
std::unique_ptr<CachePolicy> make_belady_policy(const CachePolicySpec& spec,
                                                AccessTime window);

}  // namespace leat
