// In the place of leat/plan/policies/kinds.cc: its rows, and one more.

#include "tests/policy/kinds.h"

#include <array>

namespace leat {

std::span<const CachePolicyKind* const> cache_policy_kinds() {
  static constexpr std::array kKinds = {
      &kBeladyPolicy, &kWindowedBeladyPolicy, &kNeverEvictPolicy,
      &kLruPolicy,    &kFifoPolicy,           &kNewestFirstPolicy,
  };
  return kKinds;
}

}  // namespace leat
