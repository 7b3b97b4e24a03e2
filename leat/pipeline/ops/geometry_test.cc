#include "leat/pipeline/ops/geometry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "leat/base/buffer.h"
#include "leat/pipeline/ops/draws.h"

namespace leat {
namespace {

constexpr std::uint64_t kField = 99;

std::vector<Op> ops_of(std::string_view text) {
  std::vector<Op> ops;
  const auto specs = parse_ops(text);
  EXPECT_TRUE(specs) << specs.error().message();
  for (const OpSpec& spec : *specs) {
    auto op = make_op(spec, ops.size());
    EXPECT_TRUE(op) << op.error().message();
    ops.push_back(*op);
  }
  return ops;
}

Geometry plan(std::string_view ops, PixelSize image, SampleRandom random = {}) {
  return plan_geometry(ops_of(ops), image, random, kField);
}

struct SizeCase {
  const char* ops;
  PixelSize image;
  PixelSize end;
};

class EndSizeTest : public ::testing::TestWithParam<SizeCase> {};

TEST_P(EndSizeTest, IsTorchvisions) {
  const Geometry geometry = plan(GetParam().ops, GetParam().image);

  EXPECT_EQ(geometry.last.width, GetParam().end.width);
  EXPECT_EQ(geometry.last.height, GetParam().end.height);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EndSizeTest,
    ::testing::Values(SizeCase{"decode_image", {500, 375}, {500, 375}},
                      SizeCase{"resize:256", {500, 375}, {341, 256}},
                      SizeCase{"resize:256", {375, 500}, {256, 341}},
                      SizeCase{"resize:100/200", {375, 500}, {200, 100}},
                      SizeCase{"center_crop:224", {500, 375}, {224, 224}},
                      SizeCase{"center_crop:224", {100, 50}, {224, 224}},
                      SizeCase{"random_resized_crop:64/32", {50, 60}, {32, 64}},
                      SizeCase{"resize:9,center_crop:5", {50, 60}, {5, 5}}));

TEST(GeometryTest, ACropBeforeAResizeOnlyNarrowsWhatItReads) {
  const Geometry geometry = plan("center_crop:100,resize:50", {201, 100});

  ASSERT_EQ(geometry.steps.size(), 1u);
  // 50.5 rounds to even.
  EXPECT_EQ(geometry.steps[0].from, (Rect{50, 0, 100, 100}));
}

TEST(GeometryTest, ACropBehindAResizeOnlyNarrowsWhatIsMade) {
  const Geometry geometry = plan("resize:256,center_crop:224", {500, 375});

  ASSERT_EQ(geometry.steps.size(), 1u);
  EXPECT_EQ(geometry.steps[0].from, (Rect{0, 0, 500, 375}));
  EXPECT_EQ(geometry.steps[0].to, (PixelSize{341, 256}));
  EXPECT_EQ(geometry.last, (Rect{58, 16, 224, 224}));
}

TEST(GeometryTest, ACropOfAMirroredPictureIsTakenFromTheOtherSide) {
  const Geometry twice =
      plan("random_horizontal_flip:1,center_crop:4,random_horizontal_flip:1",
           {9, 4});

  EXPECT_FALSE(twice.is_flipped);
  // 2.5 rounds to 2 from the present left: 3 from the other side.
  EXPECT_EQ(twice.last, (Rect{3, 0, 4, 4}));
}

TEST(GeometryTest, AResizeThatTakesOneOfTwoGetsAPictureThatIsMirrored) {
  for (const char* filter : {"nearest", "box"}) {
    const Geometry mirrored =
        plan(fmt::format("random_horizontal_flip:1,resize:4/4:interpolation={}",
                         filter),
             {8, 8});

    ASSERT_EQ(mirrored.steps.size(), 2u) << filter;
    EXPECT_EQ(mirrored.steps[0].changes,
              (std::vector<PictureChange>{{Mirror{true, false}}}));
    EXPECT_EQ(mirrored.steps[1].kind, GeometryStep::Kind::kResize);
    EXPECT_FALSE(mirrored.is_flipped);
  }
  for (const char* filter : {"bilinear", "hamming", "bicubic", "lanczos"}) {
    const Geometry later =
        plan(fmt::format("random_horizontal_flip:1,resize:4/4:interpolation={}",
                         filter),
             {8, 8});

    EXPECT_EQ(later.steps.size(), 1u) << filter;
    EXPECT_TRUE(later.is_flipped);
  }
}

TEST(GeometryTest, TooSmallAPictureIsPaddedAsTorchvisionDoes) {
  const Geometry geometry = plan("center_crop:10", {5, 20});

  ASSERT_EQ(geometry.steps.size(), 1u);
  EXPECT_EQ(geometry.steps[0].kind, GeometryStep::Kind::kPad);
  EXPECT_EQ(geometry.steps[0].to, (PixelSize{10, 20}));
  EXPECT_EQ(geometry.steps[0].pad_x, 2u);
  EXPECT_EQ(geometry.last, (Rect{0, 5, 10, 10}));
}

TEST(GeometryTest, ARandomCropLiesInsideAndKeepsItsBounds) {
  const auto ops = ops_of("random_resized_crop:32:scale=0.2/0.5:ratio=0.5/2");
  for (std::uint64_t sample = 0; sample < 2'000; ++sample) {
    const Geometry geometry = plan_geometry(
        ops, {300, 200}, {.seed = 1, .epoch = 2, .sample = {sample}}, kField);
    const Rect& crop = geometry.steps[0].from;
    ASSERT_LE(crop.x + crop.width, 300u);
    ASSERT_LE(crop.y + crop.height, 200u);
    const double area = double(crop.width) * crop.height / (300.0 * 200);
    EXPECT_GT(area, 0.19);
    EXPECT_LT(area, 0.51);
  }
}

TEST(GeometryTest, AnImpossibleCropFallsBackToTheMiddle) {
  const Geometry wide = plan("random_resized_crop:8:scale=1/1", {1000, 10});
  const Geometry tall = plan("random_resized_crop:8:scale=1/1", {10, 1000});

  EXPECT_EQ(wide.steps[0].from, (Rect{493, 0, 13, 10}));
  EXPECT_EQ(tall.steps[0].from, (Rect{0, 493, 10, 13}));
}

TEST(DrawsTest, DependOnEveryInputAndOnNothingElse) {
  const SampleRandom base{.seed = 1, .epoch = 2, .sample = {3}};
  const auto first = [](SampleRandom random, std::uint64_t op,
                        std::uint64_t field) {
    return Draws(random, op, field).uniform();
  };
  const double drawn = first(base, 4, 5);

  EXPECT_EQ(first(base, 4, 5), drawn);
  EXPECT_NE(first({2, 2, {3}}, 4, 5), drawn);
  EXPECT_NE(first({1, 3, {3}}, 4, 5), drawn);
  EXPECT_NE(first({1, 2, {4}}, 4, 5), drawn);
  EXPECT_NE(first(base, 5, 5), drawn);
  EXPECT_NE(first(base, 4, 6), drawn);
}

// The meaning of a seed must never change: these numbers come from the formula
// in draws.h, worked out apart from this code.
TEST(DrawsTest, AreTheDocumentedNumbers) {
  Draws draws({.seed = 1, .epoch = 2, .sample = {3}}, 4,
              xxh3_64(as_bytes("image")));

  EXPECT_EQ(draws.uniform(), 0x1.3877aabf39f60p-6);
  EXPECT_EQ(draws.uniform(), 0x1.ac32bf0c3bca0p-6);
}

TEST(DrawsTest, AreUniformOverSamples) {
  constexpr int kCells = 16;
  constexpr int kSamples = 32'000;
  int counts[kCells] = {};
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    Draws draws({.seed = 7, .epoch = 0, .sample = {sample}}, 1, kField);
    ++counts[draws.below(kCells)];
  }
  double chi_square = 0;
  for (const int count : counts) {
    const double expected = double(kSamples) / kCells;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom, 0.1 %.
}

}  // namespace
}  // namespace leat
