// The policies of this folder, each defined in its own source.
#pragma once
#include "leat/plan/cache_policy_kind.h"

namespace leat {

extern const CachePolicyKind kBeladyPolicy;
extern const CachePolicyKind kWindowedBeladyPolicy;
extern const CachePolicyKind kNeverEvictPolicy;
extern const CachePolicyKind kLruPolicy;
extern const CachePolicyKind kFifoPolicy;

}  // namespace leat
