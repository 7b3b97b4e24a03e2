// Builds the steps of a plan, one after another.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/pipeline/ops/geometry.h"

namespace leat {

/// Follows a picture through its ops; x and y refer to the picture as the ops
/// see it, which may be mirrored already.
class PlanBuilder {
 public:
  /// `drawn` collects the draws; null: they are not needed.
  PlanBuilder(PixelSize image, std::vector<DrawnOp>* drawn) : drawn_(drawn) {
    plan_.last = {0, 0, image.width, image.height};
  }

 protected:
  using Values = std::vector<std::pair<std::string, std::vector<double>>>;

  PixelSize size() const { return {plan_.last.width, plan_.last.height}; }

  void add_resize(PixelSize to, Interpolation interpolation);
  void add_colour(const Op& op, const ColourChange& one);
  void warp(const AffineMatrix& matrix, PixelSize to, const WarpStyle& style);
  /// Changes that keep the size; some may warp.
  void add_all(std::vector<PictureChange> changes);
  /// A warp differs on a mirrored picture, and so do some resizes: this really
  /// mirrors it.
  void turn_back();
  /// Continues with the picture of the step before, if that is whole.
  void change(PictureChange one, PixelSize to);
  void note(const Op& op, std::string_view name, Values values);
  void note(const Op& op, std::string_view name);
  void note(const Op& op, const PictureEdit& edit);
  void note(const Op& op, std::string_view name, const Rect& part);
  void crop(const Rect& part);
  void crop_centre(PixelSize to);
  /// Enlarges an image that is too small. If the rest is odd, the right and the
  /// lower side get the larger half.
  void pad_to(PixelSize least, const FillColour& fill);
  void add_padding(const Padding& padding, const FillColour& fill);

  Geometry plan_;

 private:
  void push(const GeometryStep& step);

  std::vector<DrawnOp>* const drawn_;
};

}  // namespace leat
