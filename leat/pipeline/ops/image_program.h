// A chain of ops that begins by decoding an image.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program.h"

namespace leat {

/// Compiles `ops`, the first of which is a DecodeImageOp. `field` is the name
/// behind it: random draws depend on it.
///
/// Errors:
///   kInvalidArgument  an op that cannot come where it is; the message says
///                     where it can
Result<std::shared_ptr<const Program>> compile_image_program(
    std::vector<Op> ops, const std::string& field);

}  // namespace leat
