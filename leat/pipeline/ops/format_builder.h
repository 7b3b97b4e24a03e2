// How a chain's pixels are delivered: gathered op by op.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "leat/base/result.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/row_sink.h"

namespace leat {

/// Gathers what Normalize and Cast do to a value: one multiplication and one
/// addition for each channel. Refuses ops that cannot come where they are.
class FormatBuilder {
 public:
  explicit FormatBuilder(const DecodeImageOp& decode);

  /// Errors: kInvalidArgument, naming the op and where it can come.
  Result<void> apply(const Op& op);

  /// Whether one of the ops so far works on the delivered array: no op behind
  /// it works on pixels.
  bool works_on_array() const { return !on_array_.empty(); }

  PixelFormat format() const;

 private:
  bool is_of_floats() const { return is_float(format_.dtype); }
  /// Whether nothing has made other numbers of the pixels.
  bool is_of_pixels() const;
  /// Ops that move pixels without mixing them work at any bit depth.
  static Result<void> check_16_bits(const Op& op);
  /// Whether it can work on such values.
  Result<void> check(const Op& op, DType dtype) const;
  Result<void> apply(const Op& op, const PictureOpParams& picture);
  /// Refuses an op that makes other numbers of those an op on the array made.
  Result<void> check_numbers(const Op& op) const;
  Result<void> apply(const Op& op, const NormalizeOp& normalize);
  Result<void> apply(const Op& op, const CastOp& cast);
  void scale_to(CastScale scale);

  PixelFormat format_;
  DType label_dtype_ = DType::kUint8;
  std::vector<Op> on_array_;                  // The ops that work on the array.
  std::optional<std::size_t> normalized_by_;  // The index of that op.
  std::array<double, 3> scale_ = {1, 1, 1};
  std::array<double, 3> bias_ = {0, 0, 0};
};

}  // namespace leat
