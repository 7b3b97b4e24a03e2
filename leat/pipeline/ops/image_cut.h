// The point at which a chain that decodes an image is cut.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program/cut.h"

namespace leat {

/// Part of the name of every decoded record: raise it whenever the ops before a
/// cut come to make different bytes from a picture. A test of those bytes fails
/// until that is done.
inline constexpr std::uint64_t kDecodedVersion = 1;

/// How far behind the decoder a chain may be cut.
enum class CutPlace : std::uint8_t {
  kLast,     ///< Behind the last op that is the same in every epoch.
  kDecoder,  ///< Right behind it: a record has to give the whole size.
};

/// Cuts `ops`, the first of which is a DecodeImageOp; the value at the cut is
/// pixels in HWC. `whole` is the program of all ops, with the same `field`.
///
/// Errors: as compile_image_program()
Result<CutChain> cut_image_program(const std::vector<Op>& ops,
                                   const std::string& field,
                                   std::shared_ptr<const Program> whole,
                                   CutPlace place);

}  // namespace leat
