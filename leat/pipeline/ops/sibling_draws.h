// Checks that ops of one field each do not draw apart for fields of one sample.
#pragma once
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/chains.h"

namespace leat {

/// Two ops of one field each cannot have one draw: two functions that draw, or
/// one kind of random op, written once for each of two images. A random op that
/// moves pixels is checked by chain_ops() itself.
///
/// Errors: kInvalidArgument: two chains of pictures, or of what functions make
/// of bytes, have such ops, and neither is `independent`.
Result<void> check_sibling_draws(const std::vector<Chain>& chains);

}  // namespace leat
