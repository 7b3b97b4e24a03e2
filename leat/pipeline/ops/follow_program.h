// Boxes and keypoints, which follow the pixels of their picture.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program/value.h"

namespace leat {

/// The picture that a field of boxes lies in.
struct Leader {
  /// The column of the catalogue; its own bytes, or its record, whose size no
  /// op before the cut changed.
  std::size_t column = 0;
  DecodeImageOp decode;
};

/// Which of a ParseBoxesOp's two fields.
enum class BoxPart : std::uint8_t { kBoxes, kLabels };

/// Compiles `ops`: a ParseBoxesOp or ParseKeypointsOp, and what moves pixels
/// behind it, as the picture has it. `field` names it in messages.
std::shared_ptr<const ValueProgram> compile_follow_program(
    std::vector<Op> ops, const std::string& field, std::optional<Leader> leader,
    BoxPart part);

}  // namespace leat
