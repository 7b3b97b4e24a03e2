#include "leat/pipeline/ops/image_program.h"

#include <fmt/format.h>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/image_run.h"

namespace leat {
namespace {

/// Gathers what Normalize and Cast do to a value: one multiplication and one
/// addition for each channel.
class FormatBuilder {
 public:
  explicit FormatBuilder(const DecodeImageOp& decode) {
    format_.layout = decode.layout;
    format_.channels = channels_of(decode.mode);
  }

  Result<void> apply(const Op& op) {
    if (std::holds_alternative<DecodeImageOp>(op.params)) return {};
    if (const auto* normalize = std::get_if<NormalizeOp>(&op.params)) {
      return apply(op, *normalize);
    }
    if (const auto* cast = std::get_if<CastOp>(&op.params)) {
      return apply(op, *cast);
    }
    if (std::holds_alternative<RandomHorizontalFlipOp>(op.params) ||
        format_.dtype == DType::kUint8) {
      return {};
    }
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} (op {}) works on bytes: put it before the "
                             "normalize or cast that makes floats",
                             op.name, op.index));
  }

  PixelFormat format() const {
    PixelFormat format = format_;
    for (std::size_t c = 0; c < 3; ++c) {
      format.scale[c] = static_cast<float>(scale_[c]);
      format.bias[c] = static_cast<float>(bias_[c]);
    }
    return format;
  }

 private:
  Result<void> apply(const Op& op, const NormalizeOp& normalize) {
    for (const auto* numbers : {&normalize.mean, &normalize.std}) {
      if (numbers->size() == 1 || numbers->size() == format_.channels) continue;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("normalize (op {}) has {} numbers for {} "
                               "channel(s): give one, or one for each",
                               op.index, numbers->size(), format_.channels));
    }
    if (format_.dtype == DType::kUint8) to_float(CastScale::kTo01);
    for (std::size_t c = 0; c < format_.channels; ++c) {
      const double mean = normalize.mean[normalize.mean.size() == 1 ? 0 : c];
      const double std = normalize.std[normalize.std.size() == 1 ? 0 : c];
      scale_[c] /= std;
      bias_[c] = (bias_[c] - mean) / std;
    }
    return {};
  }

  Result<void> apply(const Op& op, const CastOp& cast) {
    if (cast.dtype == format_.dtype) return {};
    if (cast.dtype == DType::kUint8) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("cast (op {}) cannot turn floats back into "
                               "uint8: drop it, or the op that made floats",
                               op.index));
    }
    to_float(cast.scale);
    return {};
  }

  void to_float(CastScale scale) {
    format_.dtype = DType::kFloat32;
    if (scale == CastScale::kNone) return;
    for (double& factor : scale_) factor /= 255;
  }

  PixelFormat format_;
  std::array<double, 3> scale_ = {1, 1, 1};
  std::array<double, 3> bias_ = {0, 0, 0};
};

class ImageProgram final : public Program {
 public:
  ImageProgram(std::vector<Op> ops, const PixelFormat& format,
               const std::string& field)
      : ops_(std::move(ops)),
        decode_(std::get<DecodeImageOp>(ops_[0].params)),
        format_(format),
        field_hash_(xxh3_64(as_bytes(field))) {}

  std::optional<TensorSpec> output() const override {
    const std::optional<PixelSize> size = fixed_size_of(ops_);
    if (!size) return std::nullopt;
    return format_.tensor(*size);
  }

  Result<TensorSpec> output_for(
      std::span<const std::byte> encoded) const override {
    LEAT_TRY(const ImageHeader header,
             read_image_header(encoded, decode_.max_pixels));
    // Draws move crops, they do not change sizes: any will do.
    LEAT_TRY(const Geometry geometry, plan(header, SampleRandom{}));
    return format_.tensor({geometry.last.width, geometry.last.height});
  }

  Result<void> run(std::span<const std::byte> encoded,
                   const SampleRandom& random, Scratch& scratch,
                   std::span<std::byte> out, RunNotes& notes) const override {
    LEAT_TRY(const ImageHeader header,
             read_image_header(encoded, decode_.max_pixels));
    ImageRunRequest request{encoded, header, {}, decode_, format_};
    LEAT_TRY(request.geometry, plan(header, random));
    const Rect& last = request.geometry.last;
    LEAT_CHECK(out.size() ==
               format_.tensor({last.width, last.height}).size_bytes());
    return run_image(request, scratch, out, notes);
  }

  std::string remedy() const override {
    return "give all the same shape with leat.ops.Resize or RandomResizedCrop";
  }

 private:
  Result<Geometry> plan(const ImageHeader& header,
                        const SampleRandom& random) const {
    Geometry geometry =
        plan_geometry(ops_, upright_size(header, decode_), random, field_hash_);
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
  const std::uint64_t field_hash_;
};

}  // namespace

Result<std::shared_ptr<const Program>> compile_image_program(
    std::vector<Op> ops, const std::string& field) {
  FormatBuilder builder(std::get<DecodeImageOp>(ops[0].params));
  for (const Op& op : ops) LEAT_TRY_VOID(builder.apply(op));
  return std::shared_ptr<const Program>(
      std::make_shared<ImageProgram>(std::move(ops), builder.format(), field));
}

void ScratchDeleter::operator()(Scratch* scratch) const { delete scratch; }

ScratchRef make_scratch() { return ScratchRef(new Scratch()); }

}  // namespace leat
