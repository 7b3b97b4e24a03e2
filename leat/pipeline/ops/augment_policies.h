// AutoAugment's policies, as torchvision has them: each row is one policy of
// two steps. A step is a kind, its probability, and which of ten magnitudes.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "leat/pipeline/ops/augment.h"

namespace leat {

struct PolicyStep {
  AugmentKind kind = AugmentKind::kIdentity;
  double p = 0;
  std::uint32_t bin = 0;
};
using Policy = std::array<PolicyStep, 2>;

std::span<const Policy> policies_of(AugmentPolicy policy);

}  // namespace leat
