#include "leat/pipeline/ops/op_kind.h"

#include <algorithm>
#include <variant>

#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

/// Whether an op of pictures/ draws.
bool draws(const PictureOpParams& op) {
  return std::ranges::any_of(op.kind->info.params, [](const ParamInfo& param) {
    return param.name == kIndependent.name;
  });
}

// One line for each op.
struct KindOf {
  OpKind operator()(const DecodeImageOp&) const { return OpKind::kReads; }
  OpKind operator()(const ParseOpParams&) const { return OpKind::kReads; }
  OpKind operator()(const ParseBoxesOp&) const { return OpKind::kReads; }
  OpKind operator()(const ParseKeypointsOp&) const { return OpKind::kReads; }

  OpKind operator()(const ResizeOp&) const { return OpKind::kGeometry; }
  OpKind operator()(const CenterCropOp&) const { return OpKind::kGeometry; }
  OpKind operator()(const PadOp&) const { return OpKind::kGeometry; }

  OpKind operator()(const RandomResizedCropOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const RandomHorizontalFlipOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const RandomCropOp&) const {
    return OpKind::kRandomGeometry;
  }

  OpKind operator()(const LetterboxOp&) const { return OpKind::kGeometry; }
  OpKind operator()(const ManyCropsOp&) const { return OpKind::kGeometry; }

  OpKind operator()(const RandomVerticalFlipOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const RandomRotationOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const RandomAffineOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const RandAugmentOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const AutoAugmentOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const TrivialAugmentWideOp&) const {
    return OpKind::kRandomGeometry;
  }
  OpKind operator()(const AugMixOp&) const { return OpKind::kRandomGeometry; }

  OpKind operator()(const RandomColourOp&) const { return OpKind::kColour; }
  OpKind operator()(const GrayscaleOp&) const { return OpKind::kColour; }
  OpKind operator()(const GaussianBlurOp&) const { return OpKind::kColour; }
  OpKind operator()(const PictureOpParams& op) const {
    if (!op.kind->moves_pixels) return OpKind::kColour;
    return draws(op) ? OpKind::kRandomGeometry : OpKind::kGeometry;
  }
  OpKind operator()(const ColorJitterOp&) const { return OpKind::kColour; }
  OpKind operator()(const NormalizeOp&) const { return OpKind::kNumbers; }
  OpKind operator()(const CastOp&) const { return OpKind::kNumbers; }
  OpKind operator()(const PadToOp&) const { return OpKind::kBatch; }
  OpKind operator()(const FunctionOp&) const { return OpKind::kFunction; }
};

/// Whether an op that changes colours draws. One that is not named here does.
struct DrawsColour {
  bool operator()(const RandomColourOp& op) const { return is_open(op.p); }
  bool operator()(const GrayscaleOp& op) const { return is_open(op.p); }
  bool operator()(const GaussianBlurOp& op) const { return is_open(op.sigma); }
  bool operator()(const ColorJitterOp& op) const {
    const int changes = does(op.brightness, 1) + does(op.contrast, 1) +
                        does(op.saturation, 1) + does(op.hue, 0);
    return is_open(op.brightness) || is_open(op.contrast) ||
           is_open(op.saturation) || is_open(op.hue) ||
           changes > 1;  // In an order that is drawn.
  }
  bool operator()(const PictureOpParams& op) const { return draws(op); }
  template <typename T>
  bool operator()(const T&) const {
    return true;
  }

 private:
  static bool is_open(double p) { return p > 0 && p < 1; }
  static bool is_open(const Bounds& bounds) { return bounds[0] != bounds[1]; }
  static int does(const Bounds& bounds, double nothing) {
    return bounds == Bounds{nothing, nothing} ? 0 : 1;
  }
};

/// The different treatment of labels by an op. One line for each op that moves
/// pixels, and one for each other, so that none is forgotten.
struct ForLabels {
  FillColour fill;

  void operator()(ResizeOp& op) const {
    op.interpolation = Interpolation::kNearest;
  }
  void operator()(RandomResizedCropOp& op) const {
    op.interpolation = Interpolation::kNearest;
  }
  void operator()(CenterCropOp& op) const { op.fill = fill; }
  void operator()(PadOp& op) const { op.fill = fill; }
  void operator()(RandomCropOp& op) const { op.fill = fill; }
  void operator()(RandomHorizontalFlipOp&) const {}
  void operator()(PadToOp& op) const { op.fill = fill[0]; }

  void operator()(RandomVerticalFlipOp&) const {}
  void operator()(LetterboxOp& op) const {
    op.interpolation = Interpolation::kNearest;
    op.fill = fill;
  }
  void operator()(RandomRotationOp& op) const { set(op.style); }
  void operator()(RandomAffineOp& op) const { set(op.style); }
  void operator()(RandAugmentOp& op) const { set(op.style); }
  void operator()(AutoAugmentOp& op) const { set(op.style); }
  void operator()(TrivialAugmentWideOp& op) const { set(op.style); }
  // No mask is given to these.
  void operator()(AugMixOp&) const {}
  void operator()(ManyCropsOp&) const {}

  void operator()(DecodeImageOp&) const {}
  void operator()(ParseOpParams&) const {}
  void operator()(ParseBoxesOp&) const {}
  void operator()(ParseKeypointsOp&) const {}
  void operator()(RandomColourOp&) const {}
  void operator()(GrayscaleOp&) const {}
  void operator()(GaussianBlurOp&) const {}
  void operator()(PictureOpParams&) const {}
  void operator()(ColorJitterOp&) const {}
  void operator()(NormalizeOp&) const {}
  void operator()(CastOp&) const {}
  void operator()(FunctionOp&) const {}

 private:
  void set(WarpStyle& style) const {
    style.interpolation = Interpolation::kNearest;
    style.fill = fill;
    style.is_for_labels = true;
  }
};

}  // namespace

OpKind kind_of(const Op& op) { return std::visit(KindOf(), op.params); }

bool draws_colour(const Op& op) {
  return kind_of(op) == OpKind::kColour && std::visit(DrawsColour(), op.params);
}

bool reads_followers(const Op& op) {
  return std::holds_alternative<ParseBoxesOp>(op.params) ||
         std::holds_alternative<ParseKeypointsOp>(op.params);
}

bool is_for_images_alone(const Op& op) {
  return std::holds_alternative<AugMixOp>(op.params) ||
         std::holds_alternative<ManyCropsOp>(op.params);
}

bool loses_rows(const Op& op) {
  return moves_pixels(op) && std::holds_alternative<PictureOpParams>(op.params);
}

bool needs_equal_sizes(const Op& op) {
  return moves_pixels(op) && !std::holds_alternative<ResizeOp>(op.params) &&
         !std::holds_alternative<RandomHorizontalFlipOp>(op.params) &&
         !std::holds_alternative<RandomVerticalFlipOp>(op.params);
}

Op for_labels(Op op, std::uint8_t ignore_index) {
  std::visit(ForLabels{{ignore_index, ignore_index, ignore_index}}, op.params);
  return op;
}

bool opens_chain(const Op& op) { return kind_of(op) == OpKind::kReads; }

}  // namespace leat
