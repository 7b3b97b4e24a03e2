// Chains of several fields that a user's function joins.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/shape_program.h"
#include "leat/pipeline/program/program.h"

namespace leat {

/// One of the chains, split at its first function.
struct JointChain {
  /// The output of the preceding ops; without any, the field of the catalogue.
  OutputField before;
  FieldKind kind = FieldKind::kBytes;  ///< In the catalogue.
  std::string field;                   ///< See compile_image_program().
  DecodeImageOp decode;                ///< For image ops behind a function.
  std::optional<OwnShapes> shapes;
  std::vector<Op> ops;  ///< The first of them is a FunctionOp.
};

/// A program for each chain, in order. All are run together, when the first of
/// a sample is asked for its value: each reads the fields of all, which
/// `also_read` has to name.
///
/// Errors: as compile_image_program()
Result<std::vector<std::shared_ptr<const ValueProgram>>> compile_joint(
    std::vector<JointChain> chains);

}  // namespace leat
