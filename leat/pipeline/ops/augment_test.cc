// RandomCrop, Pad and ColorJitter, as plans and as pixels. Their parity with
// Pillow is tested in tests/python/test_ops_augment.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "leat/codec/testing/encode_image.h"
#include "leat/pipeline/ops/colour.h"
#include "leat/pipeline/ops/geometry.h"
#include "leat/pipeline/ops/op.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using testing::encode_png;
using testing::encode_webp;
using ::testing::HasSubstr;
using testing::picture;
using testing::Pixels;

std::vector<Op> augments_of(std::string_view text) {
  std::vector<Op> ops;
  const auto specs = parse_ops(text);
  for (const OpSpec& spec : *specs) {
    ops.push_back(*make_op(spec, ops.size()));
  }
  return ops;
}

Geometry plan_augments(std::string_view ops, PixelSize image,
                       std::uint64_t sample = 0) {
  return plan_geometry(augments_of(ops), image, {0, 0, SampleId{sample}}, 0);
}

/// The array of `encoded`, HWC.
Pixels run_augments(std::string_view ops, const std::string& encoded,
                    std::uint64_t sample = 0) {
  const auto specs = parse_ops("decode_image:layout=HWC," + std::string(ops));
  EXPECT_TRUE(specs) << specs.error().message();
  const auto outputs = compile_ops(*specs, {{"data"}});
  EXPECT_TRUE(outputs) << outputs.error().message();
  const Program& program = *(*outputs)[0].program;
  const auto spec = program.output_for(as_bytes(encoded));
  EXPECT_TRUE(spec) << spec.error().message();
  Pixels pixels{static_cast<std::uint32_t>(spec->shape[1]),
                static_cast<std::uint32_t>(spec->shape[0]), 3,
                std::vector<std::uint8_t>(spec->size_bytes())};
  const ScratchRef scratch = make_scratch();
  RunNotes notes;
  const auto done =
      program.run(as_bytes(encoded), {0, 0, SampleId{sample}}, *scratch,
                  std::as_writable_bytes(std::span(pixels.bytes)), notes);
  EXPECT_TRUE(done) << done.error().message();
  return pixels;
}

Pixels of_colour(std::uint8_t r, std::uint8_t g, std::uint8_t b) {
  Pixels pixels{4, 3, 3, {}};
  for (int i = 0; i < 12; ++i)
    pixels.bytes.insert(pixels.bytes.end(), {r, g, b});
  return pixels;
}

std::vector<std::uint8_t> first_pixel(const Pixels& pixels) {
  return {pixels.bytes.begin(), pixels.bytes.begin() + 3};
}

TEST(PadTest, PutsThePictureWhereItShallBe) {
  const Pixels original = picture(7, 5);
  const Pixels got =
      run_augments("pad:1/2/3/4:fill=9/8/7", encode_png(original));

  ASSERT_EQ(got.width, 11u);
  ASSERT_EQ(got.height, 11u);
  for (std::uint32_t y = 0; y < 11; ++y) {
    for (std::uint32_t x = 0; x < 11; ++x) {
      const bool is_inside = x >= 1 && x < 8 && y >= 2 && y < 7;
      for (std::uint32_t c = 0; c < 3; ++c) {
        ASSERT_EQ(got.at(x, y, c), is_inside ? original.at(x - 1, y - 2, c)
                                             : 9 - static_cast<int>(c));
      }
    }
  }
}

TEST(PadTest, KnowsItsSizeBeforehandIfItIsFixed) {
  EXPECT_EQ(fixed_size_of(augments_of("pad:4")), std::nullopt);
  EXPECT_EQ(fixed_size_of(augments_of("resize:8/6,pad:1/2/3/4")),
            (PixelSize{10, 14}));
  EXPECT_EQ(fixed_size_of(augments_of("center_crop:8,pad:size=4/20")),
            (PixelSize{20, 8}));
  EXPECT_EQ(fixed_size_of(augments_of("pad:4,random_crop:5/6")),
            (PixelSize{6, 5}));
}

TEST(PadTest, AddsNoStepThatDoesNothing) {
  EXPECT_TRUE(plan_augments("pad:0", {8, 8}).steps.empty());
  EXPECT_TRUE(plan_augments("pad:size=8", {8, 9}).steps.empty());
  EXPECT_TRUE(plan_augments("random_crop:8", {8, 9}).steps.empty());
  EXPECT_TRUE(plan_augments("color_jitter", {8, 9}).steps.empty());
}

TEST(PadTest, HugePaddingIsRefusedBeforeMemoryIsTaken) {
  const auto outputs = compile_ops(
      *parse_ops("decode_image:max_pixels=1000,pad:65535,pad:65535"),
      {{"data"}});
  ASSERT_TRUE(outputs);
  const auto spec =
      (*outputs)[0].program->output_for(as_bytes(encode_png(picture(8, 8))));
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message(), HasSubstr("more than the limit of 1000"));
}

TEST(RandomCropTest, IsAPartOfThePaddedPicture) {
  const std::string encoded = encode_webp(picture(20, 16), {.quality = 100});
  const Pixels padded = run_augments("pad:3", encoded);
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  for (std::uint64_t sample = 0; sample < 60; ++sample) {
    const Rect part =
        plan_augments("random_crop:9/10:padding=3", {20, 16}, sample).last;
    EXPECT_LE(part.x + part.width, 26u);
    EXPECT_LE(part.y + part.height, 22u);
    places.emplace(part.x, part.y);
  }
  EXPECT_GT(places.size(), 30u);

  const Pixels got = run_augments("random_crop:9/10:padding=3", encoded, 5);
  bool is_somewhere = false;
  for (std::uint32_t top = 0; top <= 13; ++top) {
    for (std::uint32_t left = 0; left <= 16; ++left) {
      bool is_here = true;
      for (std::uint32_t y = 0; y < 9 && is_here; ++y) {
        for (std::uint32_t x = 0; x < 30 && is_here; ++x) {
          is_here = got.at(x / 3, y, x % 3) ==
                    padded.at(left + x / 3, top + y, x % 3);
        }
      }
      is_somewhere |= is_here;
    }
  }
  EXPECT_TRUE(is_somewhere);
}

TEST(RandomCropTest, PadsWhatIsTooSmallOnBothSides) {
  const Geometry geometry = plan_augments("random_crop:8/10:padding=1", {4, 9});

  ASSERT_EQ(geometry.steps.size(), 1u);
  EXPECT_EQ(geometry.steps[0].to, (PixelSize{14, 11}));
  EXPECT_EQ(geometry.steps[0].pad_x, 5u);
  EXPECT_EQ(geometry.steps[0].pad_y, 1u);
}

TEST(ColorJitterTest, ChangesAsItsWordsSay) {
  const std::string red = encode_png(of_colour(200, 40, 40));
  EXPECT_THAT(first_pixel(run_augments("color_jitter:0.5/0.5", red)),
              ElementsAre(100, 20, 20));
  EXPECT_THAT(first_pixel(run_augments("color_jitter:2/2", red)),
              ElementsAre(255, 80, 80));
  EXPECT_THAT(first_pixel(run_augments("color_jitter:saturation=0/0", red)),
              ElementsAre(88, 88, 88));
  EXPECT_THAT(first_pixel(run_augments("color_jitter:contrast=0/0", red)),
              ElementsAre(88, 88, 88));
  EXPECT_THAT(first_pixel(run_augments("color_jitter:hue=0/0", red)),
              ElementsAre(200, 40, 40));
  const Pixels turned = run_augments("color_jitter:hue=0.5/0.5", red);
  EXPECT_LT(turned.at(0, 0, 0), 50);  // Cyan.
  EXPECT_GT(turned.at(0, 0, 1), 190);
  EXPECT_GT(turned.at(0, 0, 2), 190);
}

TEST(ColorJitterTest, DrawsEveryOrderAndStaysWithinItsBounds) {
  std::set<std::vector<ColourKind>> orders;
  for (std::uint64_t sample = 0; sample < 400; ++sample) {
    const Geometry geometry =
        plan_augments("color_jitter:0.4:contrast=0.2/0.3:saturation=3:hue=0.1",
                      {8, 8}, sample);
    ASSERT_EQ(geometry.steps.size(), 1u);
    std::vector<ColourKind> order;
    for (const PictureChange& made : geometry.steps[0].changes) {
      const auto& change = std::get<ColourChange>(made.what);
      order.push_back(change.kind);
      constexpr double kBounds[][2] = {
          {0.6, 1.4}, {0.2, 0.3}, {0, 4}, {-0.1, 0.1}};
      const auto& bounds = kBounds[static_cast<std::size_t>(change.kind)];
      EXPECT_GE(change.amount, bounds[0]);
      EXPECT_LE(change.amount, bounds[1]);
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 24u);
}

TEST(ColorJitterTest, NeedsAllPixelsThatAreThere) {
  const Geometry geometry =
      plan_augments("color_jitter:contrast=2/2,center_crop:4", {20, 10});

  ASSERT_EQ(geometry.steps.size(), 1u);
  EXPECT_EQ(geometry.read_of(0), (Rect{0, 0, 20, 10}));
  EXPECT_EQ(geometry.read_of(1), (Rect{8, 3, 4, 4}));

  const std::string encoded = encode_png(picture(20, 10));
  const Pixels whole = run_augments("color_jitter:contrast=2/2", encoded);
  const Pixels part =
      run_augments("color_jitter:contrast=2/2,center_crop:4", encoded);
  for (std::uint32_t y = 0; y < 4; ++y) {
    for (std::uint32_t x = 0; x < 4; ++x) {
      EXPECT_EQ(part.at(x, y, 1), whole.at(8 + x, 3 + y, 1));
    }
  }
}

TEST(ColorJitterTest, EveryColourComesBackFromAWholeTurnOrStaysClose) {
  for (int i = 0; i < 4096; ++i) {
    std::uint8_t rgb[3] = {static_cast<std::uint8_t>(i % 16 * 17),
                           static_cast<std::uint8_t>(i / 16 % 16 * 17),
                           static_cast<std::uint8_t>(i / 256 * 17)};
    const std::vector<std::uint8_t> before(rgb, rgb + 3);
    const ColourChange none[] = {{ColourKind::kHue, 0}};
    change_colours({rgb, 3, 1, 1, 3}, none);
    // In HSV of bytes, the hue is off by up to 1 / 255 of the circle.
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(rgb[c], before[static_cast<std::size_t>(c)], 7);
    }
  }
}

TEST(AugmentTest, SayWhatIsWrong) {
  const auto error_of = [](std::string_view text) {
    const auto op = make_op((*parse_ops(text))[0], 0);
    EXPECT_FALSE(op) << text;
    return op ? "" : op.error().message();
  };
  EXPECT_THAT(error_of("random_crop"), HasSubstr("needs 'size'"));
  EXPECT_THAT(error_of("pad:1/2/3"), HasSubstr("1 or 2 or 4 whole numbers"));
  EXPECT_THAT(error_of("pad:-1"), HasSubstr("from 0 to 65535"));
  EXPECT_THAT(error_of("pad:1:fill=256"), HasSubstr("from 0 to 255"));
  EXPECT_THAT(error_of("pad:1:size=8"), HasSubstr("not both"));
  EXPECT_THAT(error_of("color_jitter:-1"), HasSubstr("two bounds"));
  EXPECT_THAT(error_of("color_jitter:hue=0.6"), HasSubstr("-0.5 to 0.5"));
  EXPECT_THAT(error_of("color_jitter:contrast=2/1"), HasSubstr("low <= high"));
}

}  // namespace
}  // namespace leat
