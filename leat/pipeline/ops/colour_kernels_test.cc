// The fast loops against the plain ones, byte for byte, for each instruction
// set that this machine has.

#include "leat/pipeline/ops/colour_kernels.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

// As colour_kernels.cc: no other is compiled.
#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include "hwy/highway.h"
#include "leat/pipeline/ops/portable_colour_kernels.h"

namespace leat {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kWidths[] = {1, 2, 5, 6, 15, 16, 17, 33, 224};

Bytes colour_noise(std::size_t size, std::uint32_t seed) {
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(seed >> 24);
  }
  return bytes;
}

/// Colours in steps of 5, many of them with equal channels.
Bytes all_colours() {
  Bytes rgb;
  for (int r = 0; r < 256; r += 5) {
    for (int g = 0; g < 256; g += 5) {
      for (int b = 0; b < 256; b += 5) {
        for (const int level : {r, g, b}) {
          rgb.push_back(static_cast<std::uint8_t>(level));
        }
      }
    }
  }
  return rgb;
}

class ColourKernelsTest : public ::testing::Test {
 protected:
  ~ColourKernelsTest() override { hwy::SetSupportedTargetsForTest(0); }

  static void on_each_target(const std::function<void()>& check) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      SCOPED_TRACE(hwy::TargetName(target));
      check();
    }
  }

  using Change = std::function<void(std::uint8_t*, std::size_t)>;
  /// Rows of every width, with bytes behind them that nobody may change.
  static void expect_same(const Change& fast, const Change& plain) {
    on_each_target([&] {
      for (const std::size_t width : kWidths) {
        Bytes got = colour_noise(width * 3 + 64, 3);
        Bytes expected = got;
        fast(got.data(), width);
        plain(expected.data(), width);
        ASSERT_EQ(got, expected) << width;
      }
      Bytes got = all_colours();
      Bytes expected = got;
      fast(got.data(), got.size() / 3);
      plain(expected.data(), got.size() / 3);
      ASSERT_EQ(got, expected);
    });
  }
};

TEST_F(ColourKernelsTest, TurnTheHueAsThePlainLoopDoes) {
  for (const std::uint8_t steps : {0, 1, 25, 127, 231, 255}) {
    expect_same([=](std::uint8_t* rgb,
                    std::size_t width) { turn_hue(rgb, width, steps); },
                [=](std::uint8_t* rgb, std::size_t width) {
                  portable::turn_hue(rgb, width, steps);
                });
  }
}

TEST_F(ColourKernelsTest, SaturateAndMakeGreyAsThePlainLoopsDo) {
  for (const float amount : {-1.5F, 0.0F, 0.37F, 1.0F, 2.9F, 1e9F}) {
    expect_same([=](std::uint8_t* rgb,
                    std::size_t width) { saturate_rgb(rgb, width, amount); },
                [=](std::uint8_t* rgb, std::size_t width) {
                  portable::saturate_rgb(rgb, width, amount);
                });
  }
  expect_same([](std::uint8_t* rgb,
                 std::size_t width) { make_rgb_grey(rgb, width, rgb); },
              [](std::uint8_t* rgb, std::size_t width) {
                portable::make_rgb_grey(rgb, width, rgb);
              });
}

TEST_F(ColourKernelsTest, MakeOneByteOfEachPixel) {
  on_each_target([] {
    for (const std::size_t width : kWidths) {
      const Bytes rgb = colour_noise(width * 3, 5);
      Bytes got(width + 64, 7);
      Bytes expected = got;
      grey_of_rgb(rgb.data(), width, got.data());
      portable::grey_of_rgb(rgb.data(), width, expected.data());
      ASSERT_EQ(got, expected) << width;
      first_of_rgb(rgb.data(), width, got.data());
      portable::first_of_rgb(rgb.data(), width, expected.data());
      ASSERT_EQ(got, expected) << width;
    }
  });
}

TEST_F(ColourKernelsTest, BlendFromALevelAsThePlainLoopDoes) {
  for (const int from : {0, 101, 255}) {
    for (const float amount : {-1.5F, 0.0F, 0.37F, 1.0F, 1.4F, 1e9F}) {
      expect_same(
          [=](std::uint8_t* rgb, std::size_t width) {
            blend_from(from, rgb, width, amount);
          },
          [=](std::uint8_t* rgb, std::size_t width) {
            portable::blend_from(from, rgb, width, amount);
          });
    }
  }
}

TEST_F(ColourKernelsTest, InvertWhatReachesTheThreshold) {
  Bytes bytes = {0, 99, 100, 255};
  invert_from(100, bytes.data(), bytes.size());
  EXPECT_EQ(bytes, (Bytes{0, 99, 155, 0}));
  for (const int threshold : {0, 1, 128, 255, 256}) {
    expect_same(
        [=](std::uint8_t* rgb, std::size_t width) {
          invert_from(threshold, rgb, width * 3);
        },
        [=](std::uint8_t* rgb, std::size_t width) {
          portable::invert_from(threshold, rgb, width * 3);
        });
  }
}

TEST_F(ColourKernelsTest, MirrorARowAsThePlainLoopDoes) {
  on_each_target([] {
    for (const std::size_t width : kWidths) {
      for (const std::uint32_t channels : {1u, 2u, 3u, 6u}) {
        const Bytes row = colour_noise(width * channels, 9);
        Bytes got(width * channels + 64, 7);
        Bytes expected = got;
        mirror_row(row.data(), width, channels, got.data());
        portable::mirror_row(row.data(), width, channels, expected.data());
        ASSERT_EQ(got, expected) << width;
      }
    }
  });
}

}  // namespace
}  // namespace leat
