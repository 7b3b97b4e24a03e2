#include "leat/pipeline/ops/moved.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "leat/pipeline/program/program.h"

namespace leat {
namespace {

Geometry plan_of(const std::string& ops, PixelSize image,
                 std::uint64_t sample = 0) {
  std::vector<Op> made;
  const auto specs = parse_ops(ops);
  EXPECT_TRUE(specs) << ops;
  for (const OpSpec& spec : *specs) made.push_back(*make_op(spec, made.size()));
  return plan_geometry(made, image, {0, 0, SampleId{sample}}, 0);
}

void expect_box(const MovedBox& got, const Box& box, double visible) {
  EXPECT_DOUBLE_EQ(got.box.left, box.left);
  EXPECT_DOUBLE_EQ(got.box.top, box.top);
  EXPECT_DOUBLE_EQ(got.box.right, box.right);
  EXPECT_DOUBLE_EQ(got.box.bottom, box.bottom);
  EXPECT_DOUBLE_EQ(got.visible, visible);
}

TEST(MovedTest, ABoxGoesWhereItsPixelsGo) {
  const Box box{10, 20, 30, 30};
  expect_box(moved(plan_of("resize:80/50", {100, 40}), box), {5, 40, 15, 60},
             1);
  expect_box(moved(plan_of("pad:1/2/3/4", {100, 40}), box), {11, 22, 31, 32},
             1);
  expect_box(moved(plan_of("random_horizontal_flip:1", {100, 40}), box),
             {70, 20, 90, 30}, 1);
  expect_box(
      moved(plan_of("random_horizontal_flip:1,pad:1/2/3/4", {100, 40}), box),
      {71, 22, 91, 32}, 1);
  // From 30 to 70, from 10 to 30.
  expect_box(moved(plan_of("center_crop:20/40", {100, 40}), {20, 20, 40, 40}),
             {0, 10, 10, 20}, 0.25);
}

TEST(MovedTest, WhatACropCutOffDoesNotComeBack) {
  const Geometry geometry = plan_of("center_crop:20/40,pad:10", {100, 40});
  expect_box(moved(geometry, Box{20, 20, 40, 40}), {10, 20, 20, 30}, 0.25);
  EXPECT_FALSE(moved(geometry, Point{20, 20}).is_visible);
  EXPECT_TRUE(moved(geometry, Point{30, 20}).is_visible);
}

TEST(MovedTest, APointIsAPixelSoThatTheFarEdgesAreOutside) {
  for (const char* flip : {"0", "1"}) {
    const Geometry whole =
        plan_of(fmt::format("random_horizontal_flip:{}", flip), {100, 40});
    EXPECT_TRUE(moved(whole, Point{0, 0}).is_visible);
    EXPECT_TRUE(moved(whole, Point{99, 39}).is_visible);
    EXPECT_TRUE(moved(whole, Point{99.5, 39.5}).is_visible);
    EXPECT_FALSE(moved(whole, Point{100, 39}).is_visible);
    EXPECT_FALSE(moved(whole, Point{99, 40}).is_visible);
  }
  // From 30 to 70, from 10 to 30.
  const Geometry crop = plan_of("center_crop:20/40", {100, 40});
  EXPECT_TRUE(moved(crop, Point{30, 10}).is_visible);
  EXPECT_TRUE(moved(crop, Point{69, 29}).is_visible);
  EXPECT_FALSE(moved(crop, Point{70, 29}).is_visible);
  EXPECT_FALSE(moved(crop, Point{69, 30}).is_visible);
}

TEST(MovedTest, ABoxOutsideHasNoArea) {
  const MovedBox got =
      moved(plan_of("center_crop:20/40", {100, 40}), Box{80, 0, 90, 5});
  EXPECT_EQ(got.visible, 0);
  EXPECT_EQ(got.box.area(), 0);
}

TEST(MovedTest, TheWholePictureStaysTheWholeOrLess) {
  const std::string ops =
      "random_resized_crop:31/17,random_horizontal_flip,pad:2,"
      "random_crop:20/15,random_horizontal_flip,resize:9/11";
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    const PixelSize image{64, 48};
    const Geometry geometry = plan_of(ops, image, sample);
    const MovedBox whole = moved(geometry, Box{0, 0, 64, 48});
    EXPECT_GE(whole.box.left, 0);
    EXPECT_LE(whole.box.right, geometry.last.width);
    EXPECT_GT(whole.visible, 0);
    // A corner of a box goes where the point goes.
    const Point point{20 + static_cast<double>(sample % 20), 20};
    const MovedPoint at = moved(geometry, point);
    if (!at.is_visible) continue;
    const MovedBox box =
        moved(geometry, Box{point.x, point.y, point.x, point.y});
    // Mirrored, a pixel is that one, and a corner the edge of it.
    EXPECT_NEAR(box.box.left - (geometry.is_flipped ? 1 : 0), at.point.x, 1e-9);
    EXPECT_NEAR(box.box.top, at.point.y, 1e-9);
  }
}

}  // namespace
}  // namespace leat
