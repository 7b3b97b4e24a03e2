// The seam for ops that change a picture where it lies, anywhere in a chain:
// each is a source of its own in pictures/, and a row in the list there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "leat/base/result.h"
#include "leat/pipeline/ops/draw_ops.h"
#include "leat/pipeline/ops/draws.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/ops/picture.h"
#include "leat/pipeline/ops/row_sink.h"
#include "leat/pipeline/program/tensor.h"

namespace leat {

class ParamReader;

/// The values of a picture at an op's place in the chain, mirrored as the ops
/// before it say: bytes, or behind Normalize and Cast the delivered array.
struct PictureValues {
  std::byte* first = nullptr;  ///< The left and top one, first channel.
  DType dtype = DType::kUint8;
  PixelSize size;
  std::uint32_t channels = 3;  ///< The bytes of a grey one may have 3, equal.
  /// Bytes from a value to the one below it, the one at its right, and that of
  /// the next channel. The first two are below 0 of a mirrored picture.
  std::ptrdiff_t row_step = 0;
  std::ptrdiff_t column_step = 0;
  std::ptrdiff_t channel_step = 0;

  std::byte* at(std::uint32_t x, std::uint32_t y, std::uint32_t c) const {
    return first + std::ptrdiff_t{y} * row_step +
           std::ptrdiff_t{x} * column_step + std::ptrdiff_t{c} * channel_step;
  }
  PictureValues mirrored(Mirror how) const;
};

/// The delivered array.
/// REQUIRES: out.size() == format.tensor(size).size_bytes()
PictureValues values_in(const PixelFormat& format, PixelSize size,
                        std::span<std::byte> out);

/// The change that an op drew for one sample.
class PictureEdit {
 public:
  virtual ~PictureEdit() = default;
  virtual void apply(const PictureValues& values) const = 0;
  /// The draws, for Chain.drawn(). Its op is filled in, and its name if empty.
  virtual DrawnOp drawn() const { return {}; }
};

/// An op with its parameters.
///
/// Threads: any; it never changes.
class PictureOp {
 public:
  virtual ~PictureOp() = default;

  /// Whether it takes such values.
  ///
  /// Errors: kInvalidArgument: the reason and the remedy, as they go on behind
  ///         the op's name
  virtual Result<void> check(DType dtype, std::uint32_t channels) const = 0;

  /// Null: this sample stays as it is. The draws are the same for all fields
  /// that the op works on, unless it is `independent`, and nothing else may be
  /// drawn from.
  virtual std::shared_ptr<const PictureEdit> draw(PixelSize size,
                                                  Draws& draws) const = 0;
};

/// A row of the list of such ops.
struct PictureOpKind {
  /// An op that draws has kIndependent among its parameters.
  OpInfo info;
  /// Moves values and mixes none, so that it works on masks, too, with the
  /// draw of their image. Boxes and keypoints cannot follow it.
  bool moves_pixels = false;
  /// Reads and checks the parameters; errors go to `params`.
  std::shared_ptr<const PictureOp> (*make)(ParamReader& params) = nullptr;
};

/// All of them, in the order in which help lists them, behind all other ops.
std::span<const PictureOpKind* const> picture_op_kinds();

}  // namespace leat
