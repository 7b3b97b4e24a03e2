#include "leat/pipeline/ops/image_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/image_run.h"
#include "leat/pipeline/ops/pixel_reader.h"
#include "leat/pipeline/sample_view.h"

namespace leat {
namespace {

/// Gathers what Normalize and Cast do to a value: one multiplication and one
/// addition for each channel.
class FormatBuilder {
 public:
  explicit FormatBuilder(const DecodeImageOp& decode) {
    format_.layout = decode.layout;
    format_.channels = channels_of(decode.mode);
    format_.dtype = pixel_dtype(decode.mode);
    format_.is_16_bits = decode.mode == PixelMode::kGrey16;
    label_dtype_ = decode.is_mask() ? decode.label_dtype : DType::kUint8;
  }

  Result<void> apply(const Op& op) {
    if (std::holds_alternative<DecodeImageOp>(op.params)) return {};
    if (const auto* normalize = std::get_if<NormalizeOp>(&op.params)) {
      return apply(op, *normalize);
    }
    if (const auto* cast = std::get_if<CastOp>(&op.params)) {
      return apply(op, *cast);
    }
    if (std::holds_alternative<RandomHorizontalFlipOp>(op.params)) return {};
    if (is_of_pixels()) return format_.is_16_bits ? check_16_bits(op) : ok();
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} (op {}) works on bytes: put it before the "
                             "normalize or cast that makes {}",
                             op.name, op.index,
                             is_float() ? "floats" : to_string(format_.dtype)));
  }

  PixelFormat format() const {
    PixelFormat format = format_;
    if (label_dtype_ != DType::kUint8) format.dtype = label_dtype_;
    for (std::size_t c = 0; c < 3; ++c) {
      format.scale[c] = static_cast<float>(scale_[c]);
      format.bias[c] = static_cast<float>(bias_[c]);
    }
    format.exact_scale = scale_[0];
    format.exact_bias = bias_[0];
    if (!format.is_16_bits && format.dtype != DType::kUint8 &&
        format.dtype != DType::kFloat32) {
      format.table =
          make_pixel_table(format.dtype, format.channels, scale_, bias_);
    }
    return format;
  }

 private:
  static Result<void> ok() { return {}; }

  /// Whether nothing has made other numbers of them.
  bool is_of_pixels() const {
    return format_.dtype ==
           (format_.is_16_bits ? DType::kUint16 : DType::kUint8);
  }

  template <class ResizingOp>
  static bool is_nearest(const ResizingOp& op) {
    return op.interpolation == Interpolation::kNearest;
  }

  /// What moves pixels without mixing them does not mind how wide they are.
  static Result<void> check_16_bits(const Op& op) {
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
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} (op {}) works on pictures of 8 bits; those of "
                             "mode I;16 can be cropped, mirrored, padded with "
                             "0, and resized with interpolation=\"nearest\"",
                             op.name, op.index));
  }

  Result<void> apply(const Op& op, const NormalizeOp& normalize) {
    for (const auto* numbers : {&normalize.mean, &normalize.std}) {
      if (numbers->size() == 1 || numbers->size() == format_.channels) continue;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("normalize (op {}) has {} numbers for {} "
                               "channel(s): give one, or one for each",
                               op.index, numbers->size(), format_.channels));
    }
    if (!is_float()) scale_to(CastScale::kTo01);
    format_.dtype =
        normalize.dtype.value_or(is_float() ? format_.dtype : DType::kFloat32);
    for (std::size_t c = 0; c < format_.channels; ++c) {
      const double mean = normalize.mean[normalize.mean.size() == 1 ? 0 : c];
      const double std = normalize.std[normalize.std.size() == 1 ? 0 : c];
      scale_[c] /= std;
      bias_[c] = (bias_[c] - mean) / std;
    }
    return {};
  }

  Result<void> apply(const Op& op, const CastOp& cast) {
    if (is_float() && !is_float(cast.dtype)) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("cast (op {}) cannot turn floats back into {}: drop it, "
                      "or the op that made floats",
                      op.index, to_string(cast.dtype)));
    }
    const bool is_too_narrow =
        cast.dtype == DType::kUint8 || cast.dtype == DType::kInt16;
    if (format_.is_16_bits && is_too_narrow) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("cast (op {}): {} does not hold the 16 bits of "
                               "mode I;16",
                               op.index, to_string(cast.dtype)));
    }
    if (!is_float() && is_float(cast.dtype)) scale_to(cast.scale);
    format_.dtype = cast.dtype;
    return {};
  }

  void scale_to(CastScale scale) {
    if (scale == CastScale::kNone) return;
    for (double& factor : scale_) factor /= format_.is_16_bits ? 65'535 : 255;
  }

  static bool is_float(DType dtype) {
    return dtype == DType::kFloat16 || dtype == DType::kBfloat16 ||
           dtype == DType::kFloat32 || dtype == DType::kFloat64;
  }
  bool is_float() const { return is_float(format_.dtype); }

  PixelFormat format_;
  DType label_dtype_ = DType::kUint8;
  std::array<double, 3> scale_ = {1, 1, 1};
  std::array<double, 3> bias_ = {0, 0, 0};
};

/// The header, of an image that the decoder takes as it is asked to.
Result<ImageHeader> header_for(std::span<const std::byte> encoded,
                               const DecodeImageOp& decode) {
  LEAT_TRY(const ImageHeader header,
           read_image_header(encoded, decode.max_pixels));
  const bool has_16_bits = header.depth == 16;
  if (decode.mode != PixelMode::kGrey16) {
    // Of a mask the decoder says what it is instead.
    if (!has_16_bits || decode.cuts_depth || decode.is_mask()) return header;
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("this {} has 16 bits a channel, and DecodeImage would keep "
                    "8: say mode=\"I;16\" for uint16 (of grey pictures), or "
                    "depth=8 to cut them to the upper 8",
                    name_of(header.format)));
  }
  if (has_16_bits && header.is_grey) return header;
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("DecodeImage(mode=\"I;16\") takes grey PNGs of 16 "
                  "bits, and this {} {}; say mode=\"L\" or \"RGB\"{}",
                  name_of(header.format),
                  has_16_bits ? "is in colour" : "has 8 bits a channel",
                  has_16_bits ? " with depth=8" : ""));
}

class ImageProgram final : public Program {
 public:
  ImageProgram(std::vector<Op> ops, const PixelFormat& format,
               const std::string& field)
      : ops_(std::move(ops)),
        decode_(std::get<DecodeImageOp>(ops_[0].params)),
        format_(format),
        field_(field),
        field_hash_(xxh3_64(as_bytes(field))) {}

  std::optional<TensorSpec> output() const override {
    const std::optional<PixelSize> size = fixed_size_of(ops_);
    if (!size) return std::nullopt;
    return format_.tensor(*size);
  }

  Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(const ImageHeader header, header_for(encoded, decode_));
    // Draws move crops, they do not change sizes: any will do.
    LEAT_TRY(const Geometry geometry, plan(header, SampleRandom{}));
    return tensor_of(geometry);
  }

  Result<void> run(const SampleInput& input, const SampleRandom& random,
                   Scratch& scratch, std::span<std::byte> out,
                   RunNotes& notes) const override {
    LEAT_TRY(const ImageHeader header, header_for(input.encoded, decode_));
    ImageRunRequest request{input.encoded, header, {}, decode_, format_};
    LEAT_TRY(request.geometry, plan(header, random, input.sample));
    LEAT_CHECK(out.size() == tensor_of(request.geometry).size_bytes());
    return run_image(request, scratch, out, notes);
  }

  /// As output_for(), of interleaved pixels, `size` of them.
  Result<TensorSpec> output_of_pixels(PixelSize size) const {
    LEAT_TRY(const Geometry geometry, plan(header_of(size), SampleRandom{}));
    return tensor_of(geometry);
  }

  /// As run(), on interleaved pixels, `size` of them.
  Result<void> run_on_pixels(const SampleInput& pixels, PixelSize size,
                             const SampleRandom& random, Scratch& scratch,
                             std::span<std::byte> out, RunNotes& notes) const {
    const ImageHeader header = header_of(size);
    PixelReader reader(bytes_per_pixel(decode_.mode));
    ImageRunRequest request{pixels.encoded, header,  {},
                            decode_,        format_, &reader};
    LEAT_TRY(request.geometry, plan(header, random, pixels.sample));
    LEAT_CHECK(out.size() == tensor_of(request.geometry).size_bytes());
    return run_image(request, scratch, out, notes);
  }

  std::string remedy() const override {
    return "give all the same shape with leat.ops.Resize or RandomResizedCrop, "
           "or take them as they are: DecodeImage(ragged=True) gives a "
           "leat.Ragged, leat.ops.PadTo() fills up to a batch's largest";
  }

 private:
  static ImageHeader header_of(PixelSize size) {
    ImageHeader header;
    header.format = ImageFormat::kPng;  // Of full size, upright.
    header.width = size.width;
    header.height = size.height;
    return header;
  }

  TensorSpec tensor_of(const Geometry& geometry) const {
    return format_.tensor({geometry.last.width, geometry.last.height});
  }

  Result<Geometry> plan(const ImageHeader& header, const SampleRandom& random,
                        SampleView* sample = nullptr) const {
    std::vector<SizeAtOp> sizes;
    Geometry geometry =
        plan_geometry(ops_, upright_size(header, decode_), random, field_hash_,
                      sample == nullptr ? nullptr : &sizes);
    for (const auto& [op, size] : sizes) {
      LEAT_TRY_VOID(sample->meet({.op_index = op->index,
                                  .op = op->name,
                                  .field = field_,
                                  .width = size.width,
                                  .height = size.height}));
    }
    // A strip of 1 x 1,000,000 whose shorter side becomes 256 is a bomb too.
    for (const GeometryStep& step : geometry.steps) {
      if (std::uint64_t{step.to.width} * step.to.height > decode_.max_pixels) {
        return Error(
            ErrorCode::kCorrupt,
            fmt::format("{} x {} pixels would become {} x {}, more than the "
                        "limit of {}; raise DecodeImage(max_pixels=...) or "
                        "resize to a height and a width",
                        step.from.width, step.from.height, step.to.width,
                        step.to.height, decode_.max_pixels));
      }
    }
    return geometry;
  }

  const std::vector<Op> ops_;
  const DecodeImageOp decode_;
  const PixelFormat format_;
  const std::string field_;
  const std::uint64_t field_hash_;
};

/// An array as a function gave it: CHW, HWC, or HW if there is one channel.
class PixelsImageProgram final : public PixelsProgram {
 public:
  PixelsImageProgram(std::shared_ptr<const ImageProgram> image,
                     const DecodeImageOp& decode, PixelLayout given)
      : image_(std::move(image)),
        layout_(given),
        channels_(channels_of(decode.mode)),
        dtype_(pixel_dtype(decode.mode)) {}

  Result<TensorSpec> output_for(const TensorSpec& spec) const override {
    LEAT_TRY(const PixelSize size, size_of(spec));
    return image_->output_of_pixels(size);
  }

  Result<void> run(const TensorSpec& spec, const SampleInput& input,
                   const SampleRandom& random, Scratch& scratch,
                   std::span<std::byte> out, RunNotes& notes) const override {
    LEAT_TRY(const PixelSize size, size_of(spec));
    if (layout_ == PixelLayout::kHwc || channels_ == 1) {
      return image_->run_on_pixels(input, size, random, scratch, out, notes);
    }
    const std::span<const std::byte> pixels = input.encoded;
    Buffer interleaved(pixels.size());
    const auto count = static_cast<std::size_t>(channels_);
    const std::size_t plane = pixels.size() / count;
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t i = 0; i < plane; ++i) {
        interleaved.data()[i * count + c] = pixels[c * plane + i];
      }
    }
    return image_->run_on_pixels({interleaved.span(), input.sample}, size,
                                 random, scratch, out, notes);
  }

 private:
  Result<PixelSize> size_of(const TensorSpec& spec) const {
    std::vector<std::int64_t> shape = spec.shape;
    const bool is_chw = layout_ == PixelLayout::kChw;
    if (shape.size() == 2)
      shape.insert(is_chw ? shape.begin() : shape.end(), 1);
    const auto is_side = [](std::int64_t n) {
      return n > 0 && n <= kMostPixelsSide;
    };
    const std::size_t y = is_chw ? 1 : 0;
    if (spec.dtype != dtype_ || shape.size() != 3 ||
        shape[is_chw ? 0 : 2] != channels_ || !is_side(shape[y]) ||
        !is_side(shape[y + 1])) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("a function gave {} of shape ({}), and the ops "
                      "behind it work on {} images of {} channel(s) "
                      "in {}",
                      to_string(spec.dtype), fmt::join(spec.shape, ", "),
                      to_string(dtype_), channels_, is_chw ? "CHW" : "HWC"));
    }
    return PixelSize{static_cast<std::uint32_t>(shape[y + 1]),
                     static_cast<std::uint32_t>(shape[y])};
  }

  const std::shared_ptr<const ImageProgram> image_;
  const PixelLayout layout_;
  const std::int64_t channels_;
  const DType dtype_;
};

Result<std::shared_ptr<const ImageProgram>> compile(std::vector<Op> ops,
                                                    const std::string& field) {
  FormatBuilder builder(std::get<DecodeImageOp>(ops[0].params));
  for (const Op& op : ops) LEAT_TRY_VOID(builder.apply(op));
  return std::make_shared<const ImageProgram>(std::move(ops), builder.format(),
                                              field);
}

}  // namespace

Result<std::shared_ptr<const Program>> compile_image_program(
    std::vector<Op> ops, const std::string& field) {
  LEAT_TRY(std::shared_ptr<const Program> program,
           compile(std::move(ops), field));
  return program;
}

Result<std::shared_ptr<const PixelsProgram>> compile_pixels_program(
    const DecodeImageOp& decode, std::vector<Op> ops, const std::string& field,
    PixelLayout given) {
  Op first;
  first.params = decode;
  ops.insert(ops.begin(), std::move(first));
  LEAT_TRY(auto image, compile(std::move(ops), field));
  return std::shared_ptr<const PixelsProgram>(
      std::make_shared<PixelsImageProgram>(std::move(image), decode, given));
}

void ScratchDeleter::operator()(Scratch* scratch) const { delete scratch; }

ScratchRef make_scratch() { return ScratchRef(new Scratch()); }

}  // namespace leat
