// Checks that functions that skip samples skip the same ones in every epoch.
#pragma once
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/chains.h"

namespace leat {

/// Errors: kInvalidArgument: an op that draws stands before a function that
/// skips samples
Result<void> check_filters(const std::vector<Chain>& chains);

}  // namespace leat
