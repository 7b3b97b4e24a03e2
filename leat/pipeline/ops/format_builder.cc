#include "leat/pipeline/ops/format_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

template <class ResizingOp>
bool is_nearest(const ResizingOp& op) {
  return op.interpolation == Interpolation::kNearest;
}

}  // namespace

FormatBuilder::FormatBuilder(const DecodeImageOp& decode) {
  format_.layout = decode.layout;
  format_.channels = channels_of(decode.mode);
  format_.pixel_channels = format_.channels;
  format_.dtype = pixel_dtype(decode.mode);
  format_.is_16_bits = has_16_bits(decode.mode);
  label_dtype_ = decode.is_mask() ? decode.label_dtype : DType::kUint8;
}

Result<void> FormatBuilder::apply(const Op& op) {
  if (std::holds_alternative<DecodeImageOp>(op.params)) return {};
  if (const auto* normalize = std::get_if<NormalizeOp>(&op.params)) {
    return apply(op, *normalize);
  }
  if (const auto* cast = std::get_if<CastOp>(&op.params)) {
    return apply(op, *cast);
  }
  if (const auto* grey = std::get_if<GrayscaleOp>(&op.params);
      grey != nullptr && format_.dtype == DType::kUint8 && on_array_.empty()) {
    if (grey->channels == 0) return {};
    format_.channels = grey->channels;
    format_.pixel_channels = std::max(format_.pixel_channels, grey->channels);
    return {};
  }
  if (const auto* picture = std::get_if<PictureOpParams>(&op.params)) {
    return apply(op, *picture);
  }
  if (std::holds_alternative<RandomHorizontalFlipOp>(op.params) ||
      std::holds_alternative<RandomVerticalFlipOp>(op.params)) {
    return {};
  }
  if (is_of_pixels() && on_array_.empty()) {
    return format_.is_16_bits ? check_16_bits(op) : Result<void>();
  }
  if (works_on_array()) {
    return invalid("{} (op {}) works on pixels: put it before {}", op.name,
                   op.index, on_array_.front().name);
  }
  return invalid(
      "{} (op {}) works on bytes: put it before the normalize or cast that "
      "makes {}",
      op.name, op.index, is_of_floats() ? "floats" : to_string(format_.dtype));
}

PixelFormat FormatBuilder::format() const {
  PixelFormat format = format_;
  if (label_dtype_ != DType::kUint8) format.dtype = label_dtype_;
  for (std::size_t c = 0; c < 3; ++c) {
    format.scale[c] = static_cast<float>(scale_[c]);
    format.bias[c] = static_cast<float>(bias_[c]);
  }
  format.exact_scale = scale_;
  format.exact_bias = bias_;
  if (!format.is_16_bits && format.dtype != DType::kUint8 &&
      format.dtype != DType::kFloat32) {
    format.table =
        make_pixel_table(format.dtype, format.channels, scale_, bias_);
  }
  return format;
}

bool FormatBuilder::is_of_pixels() const {
  return format_.dtype == (format_.is_16_bits ? DType::kUint16 : DType::kUint8);
}

Result<void> FormatBuilder::check_16_bits(const Op& op) {
  const FillColour black = {0, 0, 0};
  const auto* pad = std::get_if<PadOp>(&op.params);
  const auto* crop = std::get_if<RandomCropOp>(&op.params);
  const auto* resize = std::get_if<ResizeOp>(&op.params);
  const auto* part = std::get_if<RandomResizedCropOp>(&op.params);
  if (std::holds_alternative<CenterCropOp>(op.params) ||
      (pad != nullptr && pad->fill == black) ||
      (crop != nullptr && crop->fill == black) ||
      (resize != nullptr && is_nearest(*resize)) ||
      (part != nullptr && is_nearest(*part))) {
    return {};
  }
  return invalid(
      "{} (op {}) works on pictures of 8 bits; those of 16 can be cropped, "
      "mirrored, padded with 0, and resized with interpolation=\"nearest\"",
      op.name, op.index);
}

Result<void> FormatBuilder::check(const Op& op, DType dtype) const {
  const auto& picture = std::get<PictureOpParams>(op.params);
  const Result<void> taken = picture.op->check(dtype, format_.channels);
  if (taken) return {};
  return Error(
      taken.error().code(),
      fmt::format("{} (op {}) {}", op.name, op.index, taken.error().message()));
}

Result<void> FormatBuilder::apply(const Op& op, const PictureOpParams&) {
  LEAT_TRY_VOID(check(op, format_.dtype));
  if (format_.dtype != DType::kUint8 || !on_array_.empty()) {
    on_array_.push_back(op);
  }
  return {};
}

Result<void> FormatBuilder::check_numbers(const Op& op) const {
  if (on_array_.empty()) return {};
  return invalid(
      "{} (op {}) would change what {} put there: put it before that", op.name,
      op.index, on_array_.back().name);
}

Result<void> FormatBuilder::apply(const Op& op, const NormalizeOp& normalize) {
  if (normalized_by_) {
    return invalid(
        "normalize (op {}) would subtract and divide once more, behind "
        "normalize (op {}): leave one of the two out",
        op.index, *normalized_by_);
  }
  normalized_by_ = op.index;
  for (const auto* numbers : {&normalize.mean, &normalize.std}) {
    if (numbers->size() == 1 || numbers->size() == format_.channels) continue;
    return invalid(
        "normalize (op {}) has {} numbers for {} channel(s): give one, or one "
        "for each",
        op.index, numbers->size(), format_.channels);
  }
  LEAT_TRY_VOID(check_numbers(op));
  if (!is_of_floats()) scale_to(CastScale::kTo01);
  format_.dtype = normalize.dtype.value_or(is_of_floats() ? format_.dtype
                                                          : DType::kFloat32);
  for (std::size_t c = 0; c < format_.channels; ++c) {
    const double mean = normalize.mean[normalize.mean.size() == 1 ? 0 : c];
    const double std = normalize.std[normalize.std.size() == 1 ? 0 : c];
    scale_[c] /= std;
    bias_[c] = (bias_[c] - mean) / std;
  }
  return {};
}

Result<void> FormatBuilder::apply(const Op& op, const CastOp& cast) {
  if (is_of_floats() && !is_float(cast.dtype)) {
    return invalid(
        "cast (op {}) cannot turn floats back into {}: drop it, or the op that "
        "made floats",
        op.index, to_string(cast.dtype));
  }
  const bool is_too_narrow =
      cast.dtype == DType::kUint8 || cast.dtype == DType::kInt16;
  if (format_.is_16_bits && is_too_narrow) {
    return invalid("cast (op {}): {} does not hold the 16 bits of the picture",
                   op.index, to_string(cast.dtype));
  }
  if (!is_of_floats() && is_float(cast.dtype)) {
    LEAT_TRY_VOID(check_numbers(op));
    scale_to(cast.scale);
  }
  // They get the type that is delivered.
  for (const Op& one : on_array_) LEAT_TRY_VOID(check(one, cast.dtype));
  format_.dtype = cast.dtype;
  return {};
}

void FormatBuilder::scale_to(CastScale scale) {
  if (scale == CastScale::kNone) return;
  for (double& factor : scale_) factor /= format_.is_16_bits ? 65'535 : 255;
}

}  // namespace leat
