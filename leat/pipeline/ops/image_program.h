// A chain of ops that begins by decoding an image.
#pragma once
#include <memory>
#include <span>
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

/// The ops of an image on pixels that are there already.
///
/// Threads: any, each with its own Scratch; it never changes.
class PixelsProgram {
 public:
  virtual ~PixelsProgram() = default;

  /// The array that the ops make of one.
  ///
  /// Errors:
  ///   kInvalidArgument  it is no uint8 image of the layout and mode that
  ///                     `decode` of compile_pixels_program() says
  virtual Result<ArrayValue> run(const TensorSpec& spec,
                                 std::span<const std::byte> pixels,
                                 const SampleRandom& random, Scratch& scratch,
                                 RunNotes& notes) const = 0;
};

/// Compiles ops that work on images of `decode`'s mode and layout, and give the
/// same layout. Errors: as compile_image_program()
Result<std::shared_ptr<const PixelsProgram>> compile_pixels_program(
    const DecodeImageOp& decode, std::vector<Op> ops, const std::string& field);

}  // namespace leat
