#include <cmath>
#include <nlohmann/json.hpp>

#include "leat/base/errors.h"
#include "leat/pipeline/ops/make_augment.h"
#include "leat/pipeline/ops/op.h"
#include "leat/pipeline/ops/op_table.h"
#include "leat/pipeline/ops/param_reader.h"
#include "leat/pipeline/ops/parse_op.h"
#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMostPadding = 65'535;
constexpr double kMostFactor = 1000;
constexpr double kMostFill = 1e30;
constexpr Choice<DType> kFloatTypes[] = {{"float32", DType::kFloat32},
                                         {"float16", DType::kFloat16},
                                         {"bfloat16", DType::kBfloat16},
                                         {"float64", DType::kFloat64}};
// Such as hold every pixel's value.
constexpr Choice<DType> kCastTypes[] = {
    {"uint8", DType::kUint8},     {"float32", DType::kFloat32},
    {"float16", DType::kFloat16}, {"bfloat16", DType::kBfloat16},
    {"float64", DType::kFloat64}, {"int16", DType::kInt16},
    {"int32", DType::kInt32},     {"int64", DType::kInt64},
    {"uint16", DType::kUint16},   {"uint32", DType::kUint32},
    {"uint64", DType::kUint64}};
const std::vector<double> kImagenetMean = {0.485, 0.456, 0.406};
const std::vector<double> kImagenetStd = {0.229, 0.224, 0.225};

OpParams decode_image(ParamReader& params) {
  DecodeImageOp op;
  op.mode = params.choice<PixelMode>("mode", {{"RGB", PixelMode::kRgb},
                                              {"L", PixelMode::kGrey},
                                              {"I;16", PixelMode::kGrey16},
                                              {"RGB;16", PixelMode::kRgb16}});
  op.layout = params.choice<PixelLayout>(
      "layout", {{"CHW", PixelLayout::kChw}, {"HWC", PixelLayout::kHwc}});
  op.is_orientation_said = !params.is_null("exif_orientation");
  if (op.is_orientation_said && !params.flag("exif_orientation")) {
    op.exif_orientation = ExifOrientation::kIgnore;
  }
  op.dct_scaling =
      params.flag("exact") ? DctScaling::kOff : DctScaling::kAllowed;
  op.max_pixels = params.count("max_pixels");
  op.is_ragged = params.flag("ragged");
  op.cuts_depth = !params.is_null("depth");
  if (op.cuts_depth && params.count("depth") != 8) {
    params.fail("takes depth=8 alone, of 16 bits the upper ones");
  }
  return op;
}

OpParams decode_mask(ParamReader& params) {
  DecodeImageOp op;
  op.mode = PixelMode::kLabels;
  op.is_orientation_said = false;
  op.layout = PixelLayout::kHw;
  op.label_dtype = params.choice<DType>(
      "dtype", {{"uint8", DType::kUint8}, {"int64", DType::kInt64}});
  op.ignore_index = static_cast<std::uint8_t>(
      params.whole_numbers("ignore_index", 255, {1})[0]);
  op.max_pixels = params.count("max_pixels");
  op.is_ragged = params.flag("ragged");
  return op;
}

OpParams resize(ParamReader& params) {
  ResizeOp op;
  op.size = params.size("size", &op.shorter_side);
  op.interpolation = interpolation_in(params);
  return op;
}

OpParams center_crop(ParamReader& params) {
  CenterCropOp op;
  op.size = params.size("size", nullptr);
  return op;
}

OpParams random_resized_crop(ParamReader& params) {
  RandomResizedCropOp op;
  op.size = params.size("size", nullptr);
  op.scale = params.range("scale", 1.0);
  op.ratio = params.range("ratio", 1000.0);
  op.interpolation = interpolation_in(params);
  return op;
}

OpParams random_horizontal_flip(ParamReader& params) {
  return RandomHorizontalFlipOp{params.number("p", 0.0, 1.0)};
}

Padding padding_in(ParamReader& params) {
  const auto sides = params.whole_numbers("padding", kMostPadding, {1, 2, 4});
  if (sides.size() == 4) return {sides[0], sides[1], sides[2], sides[3]};
  return {sides.front(), sides.back(), sides.front(), sides.back()};
}

OpParams random_crop(ParamReader& params) {
  return RandomCropOp{params.size("size", nullptr), padding_in(params),
                      fill_in(params)};
}

OpParams pad(ParamReader& params) {
  PadOp op{padding_in(params), {}, fill_in(params)};
  if (!params.is_null("size")) {
    op.least = params.size("size", nullptr);
    const Padding& given = op.padding;
    if ((given.left | given.top | given.right | given.bottom) != 0) {
      params.fail("takes 'padding' or 'size', and not both");
    }
  }
  return op;
}

OpParams pad_to(ParamReader& params) {
  PadToOp op;
  if (!params.is_null("size")) op.size = params.size("size", nullptr);
  op.multiple = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(params.count("multiple"), kMostPadding));
  op.fill = params.number("fill", -kMostFill, kMostFill);
  if (op.multiple > 1 && op.size.width != 0) {
    params.fail("takes 'size' or 'multiple', and not both");
  }
  return op;
}

OpParams color_jitter(ParamReader& params) {
  ColorJitterOp op;
  op.brightness = params.jitter("brightness", 1, 0, kMostFactor);
  op.contrast = params.jitter("contrast", 1, 0, kMostFactor);
  op.saturation = params.jitter("saturation", 1, 0, kMostFactor);
  op.hue = params.jitter("hue", 0, -0.5, 0.5);
  return op;
}

OpParams normalize(ParamReader& params) {
  NormalizeOp op;
  op.mean = params.numbers("mean", kImagenetMean);
  op.std = params.numbers("std", kImagenetStd);
  if (op.std.empty()) {
    op.std = kImagenetStd;
    if (!params.was_given("mean", "imagenet")) {
      params.fail("needs 'std' where mean is not \"imagenet\"");
    }
  }
  for (const double value : op.std) {
    if (!(std::abs(value) > 0)) params.fail("divides by a std of 0");
  }
  if (!params.is_null("dtype")) {
    op.dtype = params.choice<DType>("dtype", kFloatTypes);
  }
  return op;
}

OpParams cast(ParamReader& params) {
  CastOp op;
  op.dtype = params.choice<DType>("dtype", kCastTypes);
  op.scale = params.flag("scale") ? CastScale::kTo01 : CastScale::kNone;
  return op;
}

JsonRowsPath rows_path_in(ParamReader& params, std::string_view name) {
  Result<JsonRowsPath> path = parse_json_rows_path(params.text(name));
  if (path) return *std::move(path);
  params.fail(path.error().message());
  return {};
}

OpParams parse_boxes(ParamReader& params) {
  ParseBoxesOp op;
  op.path = rows_path_in(params, "path");
  op.format =
      params.choice<BoxFormat>("format", {{"xyxy", BoxFormat::kXyxy},
                                          {"xywh", BoxFormat::kXywh},
                                          {"cxcywh", BoxFormat::kCxcywh}});
  op.is_normalized = params.flag("normalized");
  if (!params.is_null("labels")) op.labels = rows_path_in(params, "labels");
  op.labels_to = params.text("labels_to");
  op.min_size = params.number("min_size", 0, kMostPadding);
  op.min_visibility = params.number("min_visibility", 0, 1);
  return op;
}

OpParams parse_keypoints(ParamReader& params) {
  return ParseKeypointsOp{rows_path_in(params, "path"),
                          params.flag("normalized")};
}

OpParams python(ParamReader& params) {
  return FunctionOp{.function = nullptr,
                    .joining = params.joining(),
                    .fields = params.names("fields"),
                    .draws = params.flag("draws"),
                    .filters = params.flag("filters")};
}

using MakeParams = OpParams (*)(ParamReader&);

constexpr Choice<MakeParams> kMakers[] = {
    {"decode_image", decode_image},
    {"decode_mask", decode_mask},
    {"resize", resize},
    {"center_crop", center_crop},
    {"random_resized_crop", random_resized_crop},
    {"random_horizontal_flip", random_horizontal_flip},
    {"random_crop", random_crop},
    {"pad", pad},
    {"pad_to", pad_to},
    {"color_jitter", color_jitter},
    {"normalize", normalize},
    {"cast", cast},
    {"parse_boxes", parse_boxes},
    {"parse_keypoints", parse_keypoints},
    {"python", python},
};

}  // namespace

Result<Op> make_op(const OpSpec& spec, std::size_t index) {
  const OpInfo* info = find_op(spec.name);
  if (info == nullptr) {
    return invalid("there is no op '{}'; there are {}", spec.name, op_names());
  }
  const Json given =
      Json::parse(spec.params_json, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) {
    return invalid("{}: its parameters are no JSON object", spec.name);
  }
  ParamReader params(*info, given);
  Op op;
  op.name = spec.name;
  op.index = index;
  op.field = params.text("field");
  op.to = params.text("to");
  if (find_param(*info, "independent") != nullptr) {
    op.is_independent = params.flag("independent");
  }
  for (const auto& [name, make] : kMakers) {
    if (name == spec.name) op.params = make(params);
  }
  if (auto augment = make_augment_params(spec.name, params)) {
    op.params = *std::move(augment);
  }
  for (const ParseOpKind* kind : parse_op_kinds()) {
    if (kind->info.name != spec.name) continue;
    op.params = ParseOpParams{.kind = kind, .parse = kind->make(params)};
  }
  for (const PictureOpKind* kind : picture_op_kinds()) {
    if (kind->info.name != spec.name) continue;
    op.params = PictureOpParams{.kind = kind, .op = kind->make(params)};
  }
  if (params.error()) return *params.error();
  if (auto* function = std::get_if<FunctionOp>(&op.params)) {
    function->function = spec.function;
    if (!function->fields.empty() && !(op.field.empty() && op.to.empty())) {
      return invalid("python: fields= is given instead of field= and to=");
    }
    if (function->fields.size() == 1) {
      return invalid("python: fields= names several; of one, say field=");
    }
    if (spec.function == nullptr) {
      return invalid(
          "python: a function can only be given in a program, as "
          "leat.ops.Python(...)");
    }
  }
  return op;
}

}  // namespace leat
