// Checks that users' functions do not draw apart for fields of one sample.
#pragma once
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/chains.h"

namespace leat {

/// Two functions that draw, of one field each, cannot have one draw.
///
/// Errors: kInvalidArgument: two chains of pictures, or of what functions make
/// of bytes, have such functions, and neither is `independent`.
Result<void> check_function_draws(const std::vector<Chain>& chains);

/// A function that skips samples has to skip the same ones in every epoch.
///
/// Errors: kInvalidArgument: an op before such a function draws
Result<void> check_filters(const std::vector<Chain>& chains);

}  // namespace leat
