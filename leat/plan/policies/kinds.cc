// The list of policies, in the order in which messages name them; `leat plan`
// shows them in the reverse order. It has this file to itself: a program that
// defines cache_policy_kinds() in a source of its own has other policies, as
// tests/policy does.

#include "leat/plan/policies/kinds.h"

#include <array>

namespace leat {

std::span<const CachePolicyKind* const> cache_policy_kinds() {
  static constexpr std::array kKinds = {
      &kBeladyPolicy, &kWindowedBeladyPolicy, &kNeverEvictPolicy,
      &kLruPolicy,    &kFifoPolicy,
  };
  return kKinds;
}

}  // namespace leat
