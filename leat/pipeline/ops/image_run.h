// Runs one image through one program.
#pragma once
#include <cstdint>
#include <span>

#include "leat/base/result.h"
#include "leat/codec/image/image.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/row_sink.h"
#include "leat/pipeline/ops/scratch.h"

namespace leat {

/// The inputs of an image run.
struct ImageRunRequest {
  /// An image, or if `are_pixels` one in `decode`'s mode, without gaps.
  std::span<const std::byte> encoded;
  ImageHeader header;
  Geometry geometry;
  DecodeImageOp decode;
  PixelFormat format;
  bool are_pixels = false;
};

/// The size after EXIF orientation, if that should be applied.
PixelSize upright_size(const ImageHeader& header, const DecodeImageOp& decode);

/// How far the decoder may reduce a JPEG before the first step of `plan`, which
/// is a resize: 2^n. A larger crop is never reduced less.
std::uint32_t shrink_log2_of(const ImageHeader& header, const Geometry& plan,
                             const DecodeImageOp& decode);

/// Decodes, resizes, mirrors and writes the array into `out`, with as little
/// memory as possible: rows are resized along x as they are decoded, and
/// written as soon as they are blended along y.
Result<void> run_image(const ImageRunRequest& request, Scratch& scratch,
                       std::span<std::byte> out, RunNotes& notes);

}  // namespace leat
