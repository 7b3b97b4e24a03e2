// How a chain's pixels are delivered: gathered op by op.
#pragma once
#include <array>

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

  /// Whether the ops so far made floats.
  bool is_float() const { return is_float(format_.dtype); }

  PixelFormat format() const;

 private:
  static bool is_float(DType dtype) {
    return dtype == DType::kFloat16 || dtype == DType::kBfloat16 ||
           dtype == DType::kFloat32 || dtype == DType::kFloat64;
  }

  /// Whether nothing has made other numbers of the pixels.
  bool is_of_pixels() const;
  /// Ops that move pixels without mixing them work at any bit depth.
  static Result<void> check_16_bits(const Op& op);
  Result<void> check(const Op& op, const RandomErasingOp& erasing);
  Result<void> apply(const Op& op, const NormalizeOp& normalize);
  Result<void> apply(const Op& op, const CastOp& cast);
  void scale_to(CastScale scale);

  PixelFormat format_;
  DType label_dtype_ = DType::kUint8;
  bool is_erased_ = false;  // By an op that works on the array.
  std::array<double, 3> scale_ = {1, 1, 1};
  std::array<double, 3> bias_ = {0, 0, 0};
};

}  // namespace leat
