// Programs whose samples have shapes of their own, as values.
#pragma once
#include <optional>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/program/value.h"

namespace leat {

/// How the pictures of a chain come together that differ in size.
struct OwnShapes {
  Joining joining = Joining::kShapes;
  PadRule pad_rule = {};
};

/// Reads the shapes from a chain's DecodeImage and PadTo, and takes the PadTo
/// off; `layout` is that of its pictures. None: they are of one shape.
///
/// Errors:
///   kInvalidArgument  a PadTo that is not the last op
Result<std::optional<OwnShapes>> take_own_shapes(std::vector<Op>& ops,
                                                 PixelLayout layout);

/// Has the batches of `output` joined in this way: its values differ in shape
/// from sample to sample. REQUIRES: it has a program.
void give_own_shapes(OutputField& output, const OwnShapes& shapes);

}  // namespace leat
