// Chains of several fields that a function of the user's joins.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/shape_program.h"
#include "leat/pipeline/program.h"

namespace leat {

/// One of the chains, up to its first function and from there on.
struct JointChain {
  /// The output of the ops before; without any, the field of the catalogue.
  OutputField before;
  FieldKind kind = FieldKind::kBytes;  ///< In the catalogue.
  std::string field;                   ///< As for compile_image_program().
  DecodeImageOp decode;                ///< For ops of images behind a function.
  std::optional<OwnShapes> shapes;
  std::vector<Op> ops;  ///< The first of them is a FunctionOp.
};

/// A program for each chain, in their order. All are run at once, when the
/// first of a sample is asked for its value: each reads the fields of all,
/// which `also_read` has to name.
///
/// Errors: as compile_image_program()
Result<std::vector<std::shared_ptr<const ValueProgram>>> compile_joint(
    std::vector<JointChain> chains);

}  // namespace leat
