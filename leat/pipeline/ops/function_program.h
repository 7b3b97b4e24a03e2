// Chains that a function of the user's is part of.
#pragma once
#include <memory>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program.h"

namespace leat {

/// What `before` makes of a field's bytes (nothing: they stay), and then the
/// functions of `ops`, one after the other.
///
/// REQUIRES: every op is a FunctionOp, and there is one.
std::shared_ptr<const ValueProgram> compile_functions(
    const OutputField& before, const std::vector<Op>& ops);

}  // namespace leat
