// MixUp and CutMix: a batch whose samples take of the sample before them, where
// they lie. The first takes of the last.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "leat/pipeline/program/tensor.h"

namespace leat {

/// Whether blend_samples() takes numbers of that type: the floats.
bool can_blend(DType dtype);

/// Makes each sample `share` times its own numbers and 1 - `share` times those
/// of the one before it. It reads and writes each number once, and needs memory
/// for a block of a sample.
///
/// REQUIRES: `batch` holds `samples` of equal size, aligned for their numbers;
/// can_blend(dtype).
void blend_samples(std::span<std::byte> batch, std::size_t samples, DType dtype,
                   double share);

/// A sample as planes of rows of bytes, one after the other: three planes for
/// a picture in CHW, one in HWC.
struct PlanesOfRows {
  std::size_t planes = 0;
  std::size_t rows = 0;
  std::size_t row_bytes = 0;
};

/// The same part of each plane.
struct PartOfRows {
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t first_byte = 0;
  std::size_t bytes = 0;  ///< In each row.
};

/// Replaces the part of each sample by that of the one before it. It needs
/// memory for the part of one plane.
///
/// REQUIRES: `batch` holds samples of that shape; the part lies in it.
void paste_samples(std::span<std::byte> batch, const PlanesOfRows& shape,
                   const PartOfRows& part);

}  // namespace leat
