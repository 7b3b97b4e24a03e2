// Chains that a function of the user's is part of.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/shape_program.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/user_function.h"
#include "leat/pipeline/program/value.h"

namespace leat {

/// A value as a function gets it.
FunctionInput input_of(const Value& value);
/// A field as the sample has it, before any op.
FunctionInput input_of(std::span<const std::byte> bytes, FieldKind kind);

/// The output of a field's programs; nullopt if there are none.
Result<std::optional<Value>> value_before(const OutputField& before,
                                          const SampleInput& input,
                                          const SampleRandom& random,
                                          Scratch& scratch, RunNotes& notes);

struct FunctionPrograms {
  std::shared_ptr<const ValueProgram> whole;
  std::shared_ptr<const ValueProgram> rest;  ///< Null without a cut.
};

/// Runs the ops of `before` on a field (if there are none, it stays), which is
/// of this kind in the catalogue, and then `ops`, the first of which is a
/// FunctionOp; the others are such, or work on images of `decode`'s mode and
/// layout. `field` is as for compile_image_program(). `rest_before`, if not
/// null, is the part of `before` behind its cut. `shapes`: how the last one's
/// arrays are joined, if the op does not say it itself.
///
/// Errors: as compile_image_program()
Result<FunctionPrograms> compile_functions(
    const OutputField& before, FieldKind kind, const DecodeImageOp& decode,
    const std::vector<Op>& ops, const std::string& field,
    const std::shared_ptr<const Program>& rest_before,
    const std::optional<OwnShapes>& shapes = std::nullopt);

}  // namespace leat
