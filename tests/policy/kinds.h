// As leat/plan/policies/kinds.h, with a line more.
#pragma once
#include "leat/plan/policies/kinds.h"

namespace leat {

extern const CachePolicyKind kNewestFirstPolicy;

}  // namespace leat
