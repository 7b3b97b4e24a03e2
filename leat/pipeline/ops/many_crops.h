// FiveCrop and TenCrop: several arrays from one picture, one after another.
#pragma once
#include <memory>
#include <vector>

#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/program/program.h"

namespace leat {

/// A program that also works on given pixels: interleaved bytes.
class SizedProgram : public Program {
 public:
  virtual Result<TensorSpec> output_of_pixels(PixelSize size) const = 0;

  /// Like drawn(), for given pixels.
  virtual std::string drawn_for_pixels(PixelSize size,
                                       const SampleRandom& random) const = 0;

  /// REQUIRES: out.size() == output_of_pixels(size).size_bytes().
  virtual Result<void> run_on_pixels(const SampleInput& pixels, PixelSize size,
                                     const SampleRandom& random,
                                     Scratch& scratch, std::span<std::byte> out,
                                     RunNotes& notes) const = 0;
};

/// Passes the output of `before`, uint8 in HWC, through each of `views`: an
/// array with one more dimension, the first, as long as there are views.
enum class BeforeCrops : std::uint8_t { kDecodesAlone, kHasOps };
std::shared_ptr<const SizedProgram> make_many_crops(
    std::shared_ptr<const SizedProgram> before, BeforeCrops what,
    std::vector<std::shared_ptr<const SizedProgram>> views);

/// The ops of the views of `crops`, which is at `at` in `ops`: each view's crop
/// and the ops behind it, with `decode` before them.
///
/// Errors: kInvalidArgument: an op behind it other than normalize or cast
Result<std::vector<std::vector<Op>>> ops_of_views(const std::vector<Op>& ops,
                                                  std::size_t at,
                                                  const DecodeImageOp& decode);

}  // namespace leat
