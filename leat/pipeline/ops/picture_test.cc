#include "leat/pipeline/ops/picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "leat/pipeline/ops/augment.h"
#include "leat/pipeline/ops/kernels.h"
#include "leat/pipeline/ops/picture_op.h"

namespace leat {
namespace {

/// Grey pixels with the slack behind each row that a picture has.
class Grey {
 public:
  Grey(std::uint32_t width, std::uint32_t height)
      : width_(width),
        height_(height),
        bytes_((width + kRowSlackBytes) * (height + 1)) {
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < width; ++x) {
        *at(x, y) = static_cast<std::uint8_t>(1 + x + y * width);
      }
    }
  }

  std::uint8_t* at(std::uint32_t x, std::uint32_t y) {
    return bytes_.data() + y * (width_ + kRowSlackBytes) + x;
  }

  ColourView view() {
    return {bytes_.data(), width_ + kRowSlackBytes, width_, height_, 1};
  }

 private:
  const std::uint32_t width_;
  const std::uint32_t height_;
  std::vector<std::uint8_t> bytes_;
};

std::vector<int> pixels_of(const ColourView& picture) {
  std::vector<int> pixels;
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    for (std::uint32_t x = 0; x < picture.width; ++x) {
      pixels.push_back(picture.data[y * picture.stride_bytes + x]);
    }
  }
  return pixels;
}

Warp warp_of(const AffineMatrix& matrix, std::uint32_t width,
             std::uint32_t height, Interpolation interpolation) {
  return {matrix, width, height, interpolation, {99, 99, 99}};
}

constexpr Interpolation kBoth[] = {Interpolation::kNearest,
                                   Interpolation::kBilinear};

TEST(WarpTest, AQuarterTurnMovesPixels) {
  for (const Interpolation interpolation : kBoth) {
    Grey grey(3, 3);
    Scratch scratch;
    const Rotation turn = rotation_of(3, 3, 90, {});
    const std::vector<PictureChange> changes = {
        {warp_of(turn.matrix, 3, 3, interpolation)}};
    EXPECT_EQ(pixels_of(change_picture(grey.view(), changes, scratch)),
              (std::vector<int>{3, 6, 9, 2, 5, 8, 1, 4, 7}));
  }
}

TEST(WarpTest, AMoveFillsWhatComesFromOutside) {
  for (const Interpolation interpolation : kBoth) {
    for (const double turned : {0.0, 1e-9}) {  // Scaled, and warped.
      Grey grey(2, 2);
      Scratch scratch;
      const std::vector<PictureChange> changes = {
          {warp_of({1, turned, -1, 0, 1, 0}, 3, 2, interpolation)}};
      EXPECT_EQ(pixels_of(change_picture(grey.view(), changes, scratch)),
                (std::vector<int>{99, 1, 2, 99, 3, 4}));
    }
  }
}

TEST(WarpTest, PlacesFarAwayAreFill) {
  for (const Interpolation interpolation : kBoth) {
    for (const double far : {-1e300, -1e12, -1e5, 1e5, 1e12, 1e300}) {
      Grey grey(4, 3);
      Scratch scratch;
      const std::vector<PictureChange> changes = {
          {warp_of({0.5, 0.25, far, -0.25, 0.5, far}, 4, 3, interpolation)}};
      EXPECT_EQ(pixels_of(change_picture(grey.view(), changes, scratch)),
                std::vector<int>(12, 99));
    }
  }
}

TEST(WarpTest, StepsBeyondFixedPointFindTheirPlaces) {
  Grey grey(3, 3);
  Scratch scratch;
  // All but the middle is far outside.
  const AffineMatrix matrix = {0x1p50, 1, -0x1.8p50, 1, 0x1p50, -0x1.8p50};
  const std::vector<PictureChange> changes = {
      {warp_of(matrix, 3, 3, Interpolation::kNearest)}};
  EXPECT_EQ(pixels_of(change_picture(grey.view(), changes, scratch)),
            (std::vector<int>{99, 99, 99, 99, 5, 99, 99, 99, 99}));
}

TEST(WarpTest, ExpandedPicturesHoldAllCorners) {
  RandomRotationOp op;
  op.expand = true;
  const Rotation quarter = rotation_of(7, 4, 90, op);
  EXPECT_EQ(quarter.width, 4u);
  EXPECT_EQ(quarter.height, 7u);
  const Rotation turned = rotation_of(100, 60, 30, op);
  EXPECT_GE(turned.width, std::ceil(100 * 0.866 + 60 * 0.5 - 1e-3));
  EXPECT_GE(turned.height, std::ceil(100 * 0.5 + 60 * 0.866 - 1e-3));
}

TEST(BlurTest, KeepsWhatIsEvenAndSpreadsWhatIsNot) {
  Grey even(20, 20);
  Grey dot(20, 20);
  for (std::uint32_t i = 0; i < 400; ++i) {
    *even.at(i % 20, i / 20) = 77;
    *dot.at(i % 20, i / 20) = 0;
  }
  *dot.at(0, 10) = 255;
  Scratch scratch;
  blur(even.view(), {{7, 3}, 1.5}, scratch);
  EXPECT_EQ(pixels_of(even.view()), std::vector<int>(400, 77));
  blur(dot.view(), {{5, 1}, 1}, scratch);
  const std::vector<int> row = {*dot.at(0, 10), *dot.at(1, 10), *dot.at(2, 10),
                                *dot.at(3, 10)};
  // The bell of sigma 1 over five pixels; the border is not repeated.
  EXPECT_EQ(row, (std::vector<int>{103, 62, 14, 0}));
  EXPECT_EQ(*dot.at(0, 9), 0);
}

/// Puts 9 on the first two values of the second row.
class Nines final : public PictureEdit {
 public:
  void apply(const PictureValues& values) const override {
    *values.at(0, 1, 0) = std::byte{9};
    *values.at(1, 1, 0) = std::byte{9};
  }
};

TEST(PictureTest, MirrorsAndEdits) {
  const auto nines = std::make_shared<const Nines>();
  const std::vector<PictureChange> orders[] = {
      {{Mirror{true, false}}, {Edit{nines, {}}}, {Mirror{false, true}}},
      // To be mirrored along x from here on.
      {{Edit{nines, {true, false}}}, {Mirror{true, true}}},
      {{Mirror{true, true}}, {Edit{nines, {false, true}}}}};
  for (const std::vector<PictureChange>& changes : orders) {
    Grey grey(3, 2);
    Scratch scratch;
    EXPECT_EQ(pixels_of(change_picture(grey.view(), changes, scratch)),
              (std::vector<int>{9, 9, 4, 3, 2, 1}));
  }
}

TEST(PictureTest, AMixIsASumOfItsChains) {
  Grey grey(2, 1);  // 1 and 2
  Mix mix;
  mix.weight = 0.5F;
  mix.weights = {0.25F, 0.25F};
  mix.chains = {{{ColourChange{ColourKind::kInvert}}},
                {{Mirror{true, false}}, {ColourChange{ColourKind::kInvert}}}};
  Scratch scratch;
  const std::vector<PictureChange> changes = {{mix}};
  // 0.5 * 1 + 0.25 * 254 + 0.25 * 253 and 0.5 * 2 + 0.25 * 253 + 0.25 * 254
  EXPECT_EQ(pixels_of(change_picture(grey.view(), changes, scratch)),
            (std::vector<int>{127, 127}));
}

TEST(DrawsTest, GammaHasItsMeanAndVariance) {
  for (const double shape : {0.3, 1.0, 4.5}) {
    double sum = 0;
    double squares = 0;
    constexpr int kCount = 20'000;
    for (int i = 0; i < kCount; ++i) {
      Draws draws({1, 2, SampleId{static_cast<std::uint64_t>(i)}}, 3, 4);
      const double value = draws.gamma(shape);
      sum += value;
      squares += value * value;
    }
    const double mean = sum / kCount;
    EXPECT_NEAR(mean, shape, 5 * std::sqrt(shape / kCount));
    EXPECT_NEAR(squares / kCount - mean * mean, shape, 0.15 * shape + 0.02);
  }
}

}  // namespace
}  // namespace leat
