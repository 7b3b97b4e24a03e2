// Which op works on which fields of a sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/pipeline/ops/follow_program.h"
#include "leat/pipeline/ops/op.h"

namespace leat {

/// The output of the ops behind the first of a chain.
enum class ChainKind : std::uint8_t {
  kImage,
  kMask,
  kFollower,  ///< Boxes, their labels, keypoints: rows in a picture.
  kFunction,  ///< The unknown result of a user's function on the bytes.
  kValue,     ///< Numbers, a text.
};

/// The ops of one field, the first of which reads its bytes. An op without
/// `field` that works on several fields is in the chain of each, with the draws
/// of the first image.
struct Chain {
  ChainKind kind = ChainKind::kValue;
  std::size_t source = 0;          ///< A field of the catalogue.
  std::string name;                ///< Behind the last op.
  std::string drawn_name;          ///< Behind the first.
  std::vector<Op> ops;             ///< In the order of their indices.
  BoxPart part = BoxPart::kBoxes;  ///< For a ParseBoxesOp.

  /// Whether ops that move pixels move it with its sample.
  bool is_spatial() const {
    return kind == ChainKind::kImage || kind == ChainKind::kMask ||
           kind == ChainKind::kFollower;
  }
};

/// The picture that followers lie in: the first image, else the first mask.
/// Null if there is none.
const Chain* leader_of(const std::vector<Chain>& chains);

/// Decides what each op works on. In the order in which the chains begin.
///
/// Errors:
///   kInvalidArgument  as compile_ops(): a field that is not there or not what
///                     the op works on, or fields of one sample that would be
///                     moved or drawn apart
Result<std::vector<Chain>> chain_ops(std::vector<Op> ops,
                                     const std::vector<FieldSpec>& fields);

}  // namespace leat
