// The fast loops in colour against the plain one in grey, channel by channel,
// for each instruction set that this machine has.

#include "leat/pipeline/ops/warp_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

// As warp_kernels.cc: no other is compiled.
#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include "hwy/highway.h"

namespace leat {
namespace {

constexpr std::uint32_t kWidth = 37;
constexpr std::uint32_t kHeight = 23;
constexpr std::size_t kSlack = 4;

/// Bytes that are 0, 255 or anything between.
struct Picture {
  explicit Picture(std::uint32_t channels)
      : stride(kWidth * channels + kSlack), bytes(stride * kHeight) {
    view = {bytes.data(), stride, kWidth, kHeight, channels};
  }

  std::uint8_t& at(std::uint32_t x, std::uint32_t y, std::uint32_t c) {
    return bytes[y * stride + x * view.channels + c];
  }

  std::size_t stride;
  std::vector<std::uint8_t> bytes;
  ColourView view;
};

Picture noisy_picture() {
  Picture colour(3);
  std::uint32_t noise = 9;
  for (std::uint8_t& byte : colour.bytes) {
    noise = noise * 1664525u + 1013904223u;
    const int value = static_cast<int>(noise >> 23) - 128;
    byte = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
  }
  return colour;
}

void expect_equal_channels(Picture& colour, const AffineMatrix& matrix,
                           Interpolation interpolation) {
  const FillColour fill = {7, 90, 200};
  Picture got(3);
  warp(colour.view, matrix, interpolation, fill, got.view);
  for (std::uint32_t c = 0; c < 3; ++c) {
    Picture grey(1);
    Picture expected(1);
    for (std::uint32_t y = 0; y < kHeight; ++y) {
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        grey.at(x, y, 0) = colour.at(x, y, c);
      }
    }
    warp(grey.view, matrix, interpolation, {fill[c], 0, 0}, expected.view);
    for (std::uint32_t y = 0; y < kHeight; ++y) {
      for (std::uint32_t x = 0; x < kWidth; ++x) {
        ASSERT_EQ(got.at(x, y, c), expected.at(x, y, 0))
            << x << ", " << y << ", " << c;
      }
    }
  }
}

TEST(WarpKernelsTest, WarpEachChannelAsIfItWereAlone) {
  Picture colour = noisy_picture();
  for (const AffineMatrix& matrix :
       {AffineMatrix{1, 0, 0, 0, 1, 0},
        AffineMatrix{0.8, 0.3, -2, -0.4, 0.9, 3},
        AffineMatrix{-0.3, 0.1, 30.2, 0.05, 0.2, 11.7}}) {
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      SCOPED_TRACE(hwy::TargetName(target));
      expect_equal_channels(colour, matrix, Interpolation::kBilinear);
      expect_equal_channels(colour, matrix, Interpolation::kBicubic);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace leat
