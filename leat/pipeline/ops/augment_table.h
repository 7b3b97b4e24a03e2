// The part of the table of ops that augments. Only op_table.cc includes it.
#pragma once
#include <array>

#include "leat/pipeline/ops/op_table.h"

namespace leat::augment_table {

using enum ParamKind;

constexpr ParamInfo kHalfP = {"p", kNumber, "0.5", "the probability"};
constexpr ParamInfo kWarpFilter = {"interpolation", kText, R"("nearest")",
                                   "nearest, bilinear or bicubic"};
constexpr ParamInfo kWarpFill = {
    "fill", kPixels, "0",
    "of what comes from outside, 0 to 255: one number, or red/green/blue"};
constexpr ParamInfo kCenter = {"center", kNumberList, "null",
                               "x/y in pixels; default: the middle"};
constexpr ParamInfo kDegrees = {
    "degrees", kNumberList, "",
    "from -degrees to degrees, or the bounds of the angle"};
constexpr ParamInfo kBins = {"num_magnitude_bins", kCount, "31",
                             "how many magnitudes there are, 2 or more"};

constexpr std::array kOnlyP = {kHalfP, kIndependent};
constexpr std::array kGrayscale = {
    ParamInfo{"num_output_channels", kCount, "1", "1, or 3 that are equal"},
};
constexpr std::array kRandomGrayscale = {
    ParamInfo{"p", kNumber, "0.1", "the probability"}, kIndependent};
constexpr std::array kGaussianBlur = {
    ParamInfo{"kernel_size", kPixels, "",
              "pixels, odd: one number, or width/height"},
    ParamInfo{"sigma", kNumberList, "[0.1, 2.0]",
              "of the bell, in pixels: one number, or its bounds"},
    kIndependent};
constexpr std::array kRandomRotation = {
    kDegrees,
    kWarpFilter,
    ParamInfo{"expand", kFlag, "false",
              "make the picture so large that all fits"},
    kCenter,
    kWarpFill,
    kIndependent};
constexpr std::array kRandomAffine = {
    kDegrees,
    ParamInfo{"translate", kNumberList, "null",
              "at most so much of the width/height, 0 to 1"},
    ParamInfo{"scale", kNumberList, "null", "its bounds"},
    ParamInfo{"shear", kNumberList, "null",
              "degrees: one number or two bounds, along x; or four bounds, "
              "along x and y"},
    kWarpFilter,
    kWarpFill,
    kCenter,
    kIndependent};
constexpr std::array kRandomPosterize = {
    ParamInfo{"bits", kNumber, "", "how many of 8 are kept"}, kHalfP,
    kIndependent};
constexpr std::array kRandomSolarize = {
    ParamInfo{"threshold", kNumber, "", "0 to 255: from here on"}, kHalfP,
    kIndependent};
constexpr std::array kRandomAdjustSharpness = {
    ParamInfo{"sharpness_factor", kNumber, "",
              "0 blurs, 1 changes nothing, 2 sharpens"},
    kHalfP, kIndependent};
constexpr std::array kRandAugment = {
    ParamInfo{"num_ops", kCount, "2", "how many changes, one after another"},
    ParamInfo{"magnitude", kPixels, "9", "which of the magnitudes, from 0"},
    kBins,
    kWarpFilter,
    kWarpFill,
    kIndependent};
constexpr std::array kAutoAugment = {
    ParamInfo{"policy", kText, R"("imagenet")", "imagenet, cifar10 or svhn"},
    kWarpFilter, kWarpFill, kIndependent};
constexpr std::array kTrivialAugmentWide = {kBins, kWarpFilter, kWarpFill,
                                            kIndependent};
constexpr std::array kAugMix = {
    ParamInfo{"severity", kCount, "3", "1 to 10"},
    ParamInfo{"mixture_width", kCount, "3", "how many chains are mixed"},
    ParamInfo{"chain_depth", kPixels, "0", "changes in each; 0 draws 1 to 3"},
    ParamInfo{"alpha", kNumber, "1.0", "of the weights' distribution"},
    ParamInfo{"all_ops", kFlag, "true", "with brightness, colour and the like"},
    ParamInfo{"interpolation", kText, R"("bilinear")",
              "nearest, bilinear or bicubic"},
    kWarpFill,
    kIndependent};
constexpr std::array kLetterbox = {
    ParamInfo{"size", kSize, "", "a side, or height and width"},
    ParamInfo{"fill", kPixels, "114",
              "of the border, 0 to 255: one number, or red/green/blue"},
    ParamInfo{"interpolation", kText, R"("bilinear")",
              "nearest, box, bilinear, hamming, bicubic or lanczos"},
};
constexpr std::array kFiveCrop = {
    ParamInfo{"size", kSize, "", "a side, or height and width"},
};
constexpr std::array kTenCrop = {
    ParamInfo{"size", kSize, "", "a side, or height and width"},
    ParamInfo{"vertical_flip", kFlag, "false",
              "mirror top to bottom, not left to right"},
};

}  // namespace leat::augment_table
