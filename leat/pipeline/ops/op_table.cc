#include "leat/pipeline/ops/op_table.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "leat/pipeline/ops/augment_table.h"
#include "leat/pipeline/ops/parse_op.h"
#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

using enum ParamKind;

constexpr std::string_view kFilters =
    "nearest, box, bilinear, hamming, bicubic or lanczos, as Pillow's";

constexpr std::array kDecodeImage = {
    ParamInfo{"mode", kText, R"("RGB")",
              "RGB, L for grey; of 16 bits RGB;16 and I;16"},
    ParamInfo{"layout", kText, R"("CHW")",
              "CHW or HWC: the order of the array's dimensions"},
    ParamInfo{"exif_orientation", kFlag, "null",
              "turn the picture upright, as its EXIF says; default: true, but "
              "beside a mask, boxes or points a picture that turns is an "
              "error"},
    ParamInfo{"exact", kFlag, "false",
              "never decode a JPEG at a fraction of its size"},
    ParamInfo{"max_pixels", kCount, "178956970",
              "refuse images that claim more"},
    ParamInfo{
        "depth", kCount, "null",
        "8: takes the upper 8 bits of PNGs of 16, which are refused else"},
    ParamInfo{"ragged", kFlag, "false",
              "pictures may differ in size, whatever ops follow"},
};
constexpr std::array kDecodeMask = {
    ParamInfo{"dtype", kText, R"("uint8")", "uint8, or int64 as losses want"},
    ParamInfo{"ignore_index", kPixels, "255",
              "0 to 255: the label where a crop or a border goes beyond"},
    ParamInfo{"ragged", kFlag, "false", "masks may differ in size"},
    ParamInfo{"max_pixels", kCount, "178956970",
              "refuse images that claim more"},
};
constexpr std::array kResize = {
    ParamInfo{"size", kSide, "", "of the shorter side, or height and width"},
    ParamInfo{"interpolation", kText, R"("bilinear")", kFilters},
};
constexpr std::array kCenterCrop = {
    ParamInfo{"size", kSize, "", "a side, or height and width"},
};
constexpr std::array kRandomResizedCrop = {
    ParamInfo{"size", kSize, "", "a side, or height and width"},
    ParamInfo{"scale", kRange, "[0.08, 1.0]", "of the crop's area"},
    ParamInfo{"ratio", kRange, "[0.75, 1.3333333333333333]",
              "of the crop's width to its height"},
    ParamInfo{"interpolation", kText, R"("bilinear")", kFilters},
    kIndependent,
};
constexpr std::array kRandomHorizontalFlip = {
    ParamInfo{"p", kNumber, "0.5", "the probability"},
    kIndependent,
};
constexpr std::string_view kPadding =
    "on every side; left-right/top-bottom; or left/top/right/bottom";
constexpr std::string_view kFill = "0 to 255: one number, or red/green/blue";
constexpr std::array kRandomCrop = {
    ParamInfo{"size", kSize, "", "a side, or height and width"},
    ParamInfo{"padding", kPixels, "0", kPadding},
    ParamInfo{"fill", kPixels, "0", kFill},
    kIndependent,
};
constexpr std::array kPad = {
    ParamInfo{"padding", kPixels, "0", kPadding},
    ParamInfo{"size", kSize, "null",
              "instead: make it at least that large, on both sides alike"},
    ParamInfo{"fill", kPixels, "0", kFill},
};
constexpr std::array kPadTo = {
    ParamInfo{"size", kSize, "null",
              "a side, or height and width; default: the batch's largest"},
    ParamInfo{"multiple", kCount, "1", "round that up to a multiple of it"},
    ParamInfo{"fill", kNumber, "0", "as the array has it"},
};
constexpr std::string_view kFactor =
    "of a factor: how far around 1, or its bounds";
constexpr std::array kColorJitter = {
    ParamInfo{"brightness", kJitter, "0", kFactor},
    ParamInfo{"contrast", kJitter, "0", kFactor},
    ParamInfo{"saturation", kJitter, "0", kFactor},
    ParamInfo{"hue", kJitter, "0",
              "of a full circle: how far around 0, or bounds; -0.5 to 0.5"},
    kIndependent,
};
constexpr std::array kNormalize = {
    ParamInfo{"mean", kNumbers, "", "of values between 0 and 1, or imagenet"},
    ParamInfo{"std", kNumbers, "null",
              "of values between 0 and 1; with mean=imagenet, ImageNet's"},
    ParamInfo{"dtype", kText, "null",
              "float16, bfloat16, float32 or float64; default: float32"},
};
constexpr std::array kCast = {
    ParamInfo{"dtype", kText, R"("float32")",
              "uint8, int16 to int64, uint16 to uint64, float16, bfloat16, "
              "float32 or float64"},
    ParamInfo{"scale", kFlag, "true", "from 0-255 to 0-1, if to floats"},
};
constexpr std::array kPython = {
    ParamInfo{"ragged", kFlag, "false",
              "the first dimension may differ from sample to sample"},
    ParamInfo{"fields", kNames, "[]", "several fields, instead of one"},
    ParamInfo{"draws", kFlag, "false", "it takes an rng"},
    ParamInfo{"filters", kFlag, "false", "it skips samples"},
    kIndependent,
};
constexpr std::string_view kRowsPath =
    "where the rows are, such as boxes or annotations[*].bbox; default: the "
    "whole document";
constexpr ParamInfo kNormalized = {
    "normalized", kFlag, "false",
    "they are shares of the picture's width and height"};
constexpr std::array kParseBoxes = {
    ParamInfo{"path", kText, R"("")", kRowsPath},
    ParamInfo{"format", kText, R"("xyxy")", "xyxy, xywh or cxcywh"},
    kNormalized,
    ParamInfo{
        "labels", kText, "null",
        "where the boxes' labels are, such as annotations[*].category_id"},
    ParamInfo{"labels_to", kText, R"("labels")", "the name of their field"},
    ParamInfo{"min_size", kNumber, "1",
              "pixels: boxes with a shorter side are dropped"},
    ParamInfo{"min_visibility", kNumber, "0",
              "0 to 1: boxes are dropped of whose area crops leave less"},
};
constexpr std::array kParseKeypoints = {
    ParamInfo{"path", kText, R"("")", kRowsPath},
    kNormalized,
};
constexpr std::array kCommon = {
    ParamInfo{"field", kText, R"("")",
              "the field to work on; default: all that the op is for"},
    ParamInfo{"to", kText, R"("")", "its name from here on"},
};

constexpr std::array kOps = {
    OpInfo{"decode_image", "JPEG, PNG, WebP or TIFF to an array named image",
           kDecodeImage},
    OpInfo{"decode_mask",
           "PNG, TIFF or .npy to labels: grey values, indices, numbers",
           kDecodeMask, "field"},
    OpInfo{"resize", "change the size, antialiased", kResize},
    OpInfo{"center_crop", "cut out the middle; pad with black if too small",
           kCenterCrop},
    OpInfo{"random_resized_crop", "cut out a random part and resize it",
           kRandomResizedCrop},
    OpInfo{"random_horizontal_flip", "mirror some, left to right",
           kRandomHorizontalFlip},
    OpInfo{"random_crop", "cut out a random part; padded if too small",
           kRandomCrop},
    OpInfo{"pad", "add a border", kPad},
    OpInfo{"pad_to", "fill up the pictures of a batch to one size; last",
           kPadTo},
    OpInfo{"color_jitter",
           "change brightness, contrast, saturation and hue in random order",
           kColorJitter},
    OpInfo{"normalize", "to floats: (value / 255 - mean) / std", kNormalize},
    OpInfo{"cast", "to another type", kCast},
    OpInfo{"parse_boxes", "boxes out of JSON, which follow their picture",
           kParseBoxes, "path"},
    OpInfo{"parse_keypoints", "points out of JSON, which follow their picture",
           kParseKeypoints, "path"},
    OpInfo{"python", "a function of yours (in Python alone)", kPython, "field"},
    OpInfo{"random_vertical_flip", "mirror some, top to bottom",
           augment_table::kOnlyP},
    OpInfo{"grayscale", "to grey", augment_table::kGrayscale},
    OpInfo{"random_grayscale", "some to grey, their channels kept",
           augment_table::kRandomGrayscale},
    OpInfo{"gaussian_blur", "blur, by a width that is drawn",
           augment_table::kGaussianBlur},
    OpInfo{"random_posterize", "keep only the highest bits of some",
           augment_table::kRandomPosterize},
    OpInfo{"random_solarize", "invert what is bright in some",
           augment_table::kRandomSolarize},
    OpInfo{"random_equalize", "make the histogram of some flat",
           augment_table::kOnlyP},
    OpInfo{"random_autocontrast", "stretch each channel of some to 0-255",
           augment_table::kOnlyP},
    OpInfo{"random_adjust_sharpness", "sharpen or blur some",
           augment_table::kRandomAdjustSharpness},
    OpInfo{"random_invert", "invert the colours of some",
           augment_table::kOnlyP},
    OpInfo{"random_rotation", "turn by a random angle",
           augment_table::kRandomRotation},
    OpInfo{"random_affine", "turn, move, scale and shear at random",
           augment_table::kRandomAffine},
    OpInfo{"rand_augment", "a few random changes of one strength",
           augment_table::kRandAugment},
    OpInfo{"auto_augment", "one of 25 learnt pairs of changes",
           augment_table::kAutoAugment},
    OpInfo{"trivial_augment_wide", "one random change of random strength",
           augment_table::kTrivialAugmentWide},
    OpInfo{"aug_mix", "mix what several random chains make",
           augment_table::kAugMix},
    OpInfo{"letterbox", "fit into a size, proportions kept, and pad",
           augment_table::kLetterbox},
    OpInfo{"five_crop", "the corners and the middle, stacked",
           augment_table::kFiveCrop},
    OpInfo{"ten_crop", "the same, and mirrored", augment_table::kTenCrop},
};

void add_names(std::string& names, std::span<const ParamInfo> params) {
  for (const ParamInfo& param : params) {
    names += names.empty() ? "" : ", ";
    names += param.name;
  }
}

}  // namespace

std::span<const OpInfo> op_table() {
  static const std::vector<OpInfo> kAll = [] {
    std::vector<OpInfo> all(kOps.begin(), kOps.end());
    for (const ParseOpKind* kind : parse_op_kinds()) all.push_back(kind->info);
    for (const PictureOpKind* kind : picture_op_kinds()) {
      all.push_back(kind->info);
    }
    return all;
  }();
  return kAll;
}

std::span<const ParamInfo> common_params() { return kCommon; }

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo& op : op_table()) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

std::string_view unnamed_param(const OpInfo& op) {
  if (!op.unnamed.empty()) return op.unnamed;
  return op.params.empty() ? kCommon[0].name : op.params[0].name;
}

const ParamInfo* find_param(const OpInfo& op, std::string_view name) {
  for (const ParamInfo& param : op.params) {
    if (param.name == name) return &param;
  }
  for (const ParamInfo& param : kCommon) {
    if (param.name == name) return &param;
  }
  return nullptr;
}

std::string op_names() {
  std::string names;
  for (const OpInfo& op : op_table()) {
    names += names.empty() ? "" : ", ";
    names += op.name;
  }
  return names;
}

std::string param_names(const OpInfo& op) {
  std::string names;
  add_names(names, op.params);
  add_names(names, kCommon);
  return names;
}

std::string ops_help() {
  std::string text =
      "Ops are written name:value:parameter=value and joined by commas; the "
      "value without a\nname is that of the parameter in brackets, and \"/\" "
      "stands between numbers\n(resize:256/320).\n";
  const auto add_param = [&](const ParamInfo& param) {
    text += fmt::format("      {}{}{}  {}\n", param.name,
                        param.default_json.empty() ? "" : "=",
                        param.default_json, param.doc);
  };
  for (const OpInfo& op : op_table()) {
    text += fmt::format("  {}[:{}]  {}\n", op.name, unnamed_param(op), op.doc);
    for (const ParamInfo& param : op.params) add_param(param);
  }
  text += "  every op\n";
  for (const ParamInfo& param : kCommon) add_param(param);
  return text;
}

}  // namespace leat
