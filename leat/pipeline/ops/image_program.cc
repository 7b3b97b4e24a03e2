#include "leat/pipeline/ops/image_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"
#include "leat/codec/image_formats.h"
#include "leat/pipeline/ops/format_builder.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/image_run.h"
#include "leat/pipeline/ops/many_crops.h"
#include "leat/pipeline/ops/orientation.h"
#include "leat/pipeline/program/sample_view.h"

namespace leat {
namespace {

/// The header, for an image that the decoder takes in the requested form.
Result<ImageHeader> header_for(std::span<const std::byte> encoded,
                               const DecodeImageOp& decode) {
  LEAT_TRY(const ImageHeader header,
           read_image_header(encoded, decode.max_pixels));
  LEAT_TRY_VOID(check_orientation(header, decode));
  if (header.has_palette && decode.mode == PixelMode::kGrey) {
    return invalid(
        "this {} has a palette, and mode=\"L\" would make numbers of its "
        "colours: DecodeMask keeps the numbers of a mask; for the brightness "
        "of a picture say mode=\"RGB\" and put Grayscale() behind it",
        name_of(*header.codec));
  }
  const bool is_deep = header.depth == 16;
  if (!has_16_bits(decode.mode)) {
    // For a mask, the decoder reports the image's real type instead.
    if (!is_deep || decode.cuts_depth || decode.is_mask()) return header;
    return invalid(
        "this {} has 16 bits a channel, and DecodeImage would keep 8: say "
        "mode=\"{}\" for uint16, or depth=8 to cut them to the upper 8",
        name_of(*header.codec), header.is_grey ? "I;16" : "RGB;16");
  }
  if (!is_deep) {
    return invalid(
        "DecodeImage(mode=\"I;16\" or \"RGB;16\") takes PNGs and TIFFs of 16 "
        "bits, and this {} has 8 bits a channel; say mode=\"L\" or \"RGB\"",
        name_of(*header.codec));
  }
  if (decode.mode == PixelMode::kRgb16 || header.is_grey) return header;
  return invalid(
      "DecodeImage(mode=\"I;16\") takes pictures in grey, and this {} is in "
      "colour; say mode=\"RGB;16\"",
      name_of(*header.codec));
}

class ImageProgram final : public SizedProgram {
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

  Result<std::string> drawn(std::span<const std::byte> encoded,
                            const SampleRandom& random) const override {
    LEAT_TRY(const ImageHeader header,
             read_image_header(encoded, decode_.max_pixels));
    return to_json(
        drawn_by(ops_, upright_size(header, decode_), random, field_hash_));
  }

  std::string drawn_for_pixels(PixelSize size,
                               const SampleRandom& random) const override {
    return to_json(drawn_by(ops_, size, random, field_hash_));
  }

  Result<TensorSpec> output_of_pixels(PixelSize size) const override {
    LEAT_TRY(const Geometry geometry, plan(header_of(size), SampleRandom{}));
    return tensor_of(geometry);
  }

  Result<void> run_on_pixels(const SampleInput& pixels, PixelSize size,
                             const SampleRandom& random, Scratch& scratch,
                             std::span<std::byte> out,
                             RunNotes& notes) const override {
    const ImageHeader header = header_of(size);
    ImageRunRequest request{pixels.encoded, header,  {},
                            decode_,        format_, /*are_pixels=*/true};
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
    if (!geometry.problem.empty()) {
      return invalid(geometry.problem);
    }
    // A strip of 1 x 1,000,000 whose shorter side becomes 256 is a bomb too.
    for (const GeometryStep& step : geometry.steps) {
      if (std::uint64_t{step.to.width} * step.to.height > decode_.max_pixels) {
        return corrupt(
            "{} x {} pixels would become {} x {}, more than the limit of {}; "
            "raise DecodeImage(max_pixels=...) or resize to a height and a "
            "width",
            step.from.width, step.from.height, step.to.width, step.to.height,
            decode_.max_pixels);
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

/// An array that is there: CHW, HWC, or HW if there is one channel.
class PixelsImageProgram final : public PixelsProgram {
 public:
  PixelsImageProgram(std::shared_ptr<const SizedProgram> image,
                     const DecodeImageOp& decode, PixelLayout given,
                     std::string_view how)
      : image_(std::move(image)),
        layout_(given),
        how_(how),
        channels_(channels_of(decode.mode)),
        dtype_(pixel_dtype(decode.mode)) {}

  Result<TensorSpec> output_for(const TensorSpec& spec) const override {
    LEAT_TRY(const PixelSize size, size_of(spec));
    return image_->output_of_pixels(size);
  }

  Result<std::string> drawn(const TensorSpec& spec,
                            const SampleRandom& random) const override {
    LEAT_TRY(const PixelSize size, size_of(spec));
    return image_->drawn_for_pixels(size, random);
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
    const std::size_t item = size_bytes_of(dtype_);
    const std::size_t plane = pixels.size() / item / count;
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t i = 0; i < plane; ++i) {
        std::memcpy(interleaved.data() + (i * count + c) * item,
                    pixels.data() + (c * plane + i) * item, item);
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
      return invalid(
          "{} {} of shape ({}), and the ops behind it work on {} images of {} "
          "channel(s) in {}",
          how_, to_string(spec.dtype), fmt::join(spec.shape, ", "),
          to_string(dtype_), channels_, is_chw ? "CHW" : "HWC");
    }
    return PixelSize{static_cast<std::uint32_t>(shape[y + 1]),
                     static_cast<std::uint32_t>(shape[y])};
  }

  const std::shared_ptr<const SizedProgram> image_;
  const PixelLayout layout_;
  const std::string how_;  // The pixels came.
  const std::int64_t channels_;
  const DType dtype_;
};

/// An array has to have the same size for any draw.
Result<void> check_size_is_not_drawn(const std::vector<Op>& ops) {
  const Op* turned = nullptr;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* rotation = std::get_if<RandomRotationOp>(&ops[i].params);
    if (rotation != nullptr && rotation->expand) turned = &ops[i];
    if (fixed_size_of({ops[i]})) turned = nullptr;
  }
  if (turned == nullptr) return {};
  return invalid(
      "random_rotation (op {}) with expand=true makes pictures of random "
      "sizes: put a resize or a crop to a height and a width behind it",
      turned->index);
}

Result<std::shared_ptr<const SizedProgram>> compile_one(
    std::vector<Op> ops, const std::string& field) {
  FormatBuilder builder(std::get<DecodeImageOp>(ops[0].params));
  for (Op& op : ops) {
    LEAT_TRY_VOID(builder.apply(op));
    if (auto* picture = std::get_if<PictureOpParams>(&op.params)) {
      picture->is_on_array = builder.works_on_array();
    }
  }
  LEAT_TRY_VOID(check_size_is_not_drawn(ops));
  return std::shared_ptr<const SizedProgram>(
      std::make_shared<ImageProgram>(std::move(ops), builder.format(), field));
}

Result<std::shared_ptr<const SizedProgram>> compile(std::vector<Op> ops,
                                                    const std::string& field) {
  const auto crops = std::ranges::find_if(ops, [](const Op& op) {
    return std::holds_alternative<ManyCropsOp>(op.params);
  });
  if (crops == ops.end()) return compile_one(std::move(ops), field);

  std::vector<Op> before(ops.begin(), crops);
  auto& decode = std::get<DecodeImageOp>(before[0].params);
  DecodeImageOp pixels = decode;
  decode.layout = PixelLayout::kHwc;
  for (const Op& op : before) {
    const auto* grey = std::get_if<GrayscaleOp>(&op.params);
    if (grey != nullptr && grey->channels != 0) {
      pixels.mode = grey->channels == 1 ? PixelMode::kGrey : PixelMode::kRgb;
    }
    if (std::holds_alternative<NormalizeOp>(op.params) ||
        std::holds_alternative<CastOp>(op.params)) {
      return invalid("{} (op {}) works on bytes: put it before {}", crops->name,
                     crops->index, op.name);
    }
  }
  LEAT_TRY(
      auto views,
      ops_of_views(ops, static_cast<std::size_t>(crops - ops.begin()), pixels));
  const BeforeCrops what =
      before.size() == 1 ? BeforeCrops::kDecodesAlone : BeforeCrops::kHasOps;
  LEAT_TRY(auto first, compile_one(std::move(before), field));
  std::vector<std::shared_ptr<const SizedProgram>> programs;
  for (std::vector<Op>& view : views) {
    LEAT_TRY(programs.emplace_back(), compile_one(std::move(view), field));
  }
  return make_many_crops(std::move(first), what, std::move(programs));
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
    PixelLayout given, std::string_view how) {
  Op first;
  first.params = decode;
  ops.insert(ops.begin(), std::move(first));
  LEAT_TRY(auto image, compile(std::move(ops), field));
  return std::shared_ptr<const PixelsProgram>(
      std::make_shared<PixelsImageProgram>(std::move(image), decode, given,
                                           how));
}

void ScratchDeleter::operator()(Scratch* scratch) const { delete scratch; }

ScratchRef make_scratch(MemoryBudget* decode_room) {
  ScratchRef scratch(new Scratch());
  scratch->decode_room = decode_room;
  return scratch;
}

}  // namespace leat
