// A chain of ops that begins by decoding an image.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program/program.h"

namespace leat {

/// Compiles `ops`, the first of which is a DecodeImageOp. `field` is its name
/// after decoding: random draws depend on it.
///
/// Errors:
///   kInvalidArgument  an op that cannot come where it is; the message says
///                     where it can
Result<std::shared_ptr<const Program>> compile_image_program(
    std::vector<Op> ops, const std::string& field);

/// The longest side of an image that is given as pixels.
inline constexpr std::int64_t kMostPixelsSide = 65535;

/// The ops of an image, applied to given pixels.
///
/// Threads: any, each with its own Scratch; it never changes.
class PixelsProgram {
 public:
  virtual ~PixelsProgram() = default;

  /// The array that run() makes from one of this `spec`.
  ///
  /// Errors:
  ///   kInvalidArgument  not an image of the type, layout and mode that
  ///                     compile_pixels_program() was told
  virtual Result<TensorSpec> output_for(const TensorSpec& spec) const = 0;

  /// See Program::drawn(). Errors: as output_for()
  virtual Result<std::string> drawn(const TensorSpec& spec,
                                    const SampleRandom& random) const = 0;

  /// Runs the ops on an array and writes another, in C order, into `out`.
  /// REQUIRES: out.size() == output_for(spec).size_bytes().
  /// Errors: as output_for(), and Program::run()
  virtual Result<void> run(const TensorSpec& spec, const SampleInput& pixels,
                           const SampleRandom& random, Scratch& scratch,
                           std::span<std::byte> out, RunNotes& notes) const = 0;
};

/// Compiles ops that work on images of `decode`'s mode, given in the layout
/// `given`; they produce `decode`'s. `how` describes their origin, in errors
/// about those that do not fit. Errors: as compile_image_program()
Result<std::shared_ptr<const PixelsProgram>> compile_pixels_program(
    const DecodeImageOp& decode, std::vector<Op> ops, const std::string& field,
    PixelLayout given, std::string_view how = "a function gave");

}  // namespace leat
