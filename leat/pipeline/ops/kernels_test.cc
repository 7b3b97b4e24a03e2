// The fast loops against the plain ones, byte for byte.

#include "leat/pipeline/ops/kernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "leat/pipeline/ops/portable_kernels.h"

namespace leat {
namespace {

std::vector<std::uint8_t> noise(std::size_t size, std::uint32_t seed) {
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    // Many extremes: they find what clamps and what overflows.
    byte = seed >> 30 == 0 ? 255 : seed >> 30 == 1 ? 0 : seed >> 20 & 0xff;
  }
  return bytes;
}

constexpr Interpolation kFilters[] = {
    Interpolation::kNearest, Interpolation::kBox,     Interpolation::kBilinear,
    Interpolation::kHamming, Interpolation::kBicubic, Interpolation::kLanczos};

struct Sizes {
  std::uint32_t from;
  std::uint32_t to;
};

constexpr Sizes kSizes[] = {{1, 1},   {1, 9},    {9, 1},   {7, 7},
                            {10, 3},  {3, 10},   {50, 49}, {49, 50},
                            {333, 5}, {100, 24}, {64, 32}, {31, 64}};

AxisWeights weights_for(Sizes sizes, Interpolation interpolation) {
  AxisWeights weights;
  weights.assign({sizes.from, 0, static_cast<double>(sizes.from), sizes.to, 0,
                  sizes.to, interpolation});
  return weights;
}

TEST(WeightsTest, OfEveryTargetSumToOne) {
  for (const Interpolation filter : kFilters) {
    for (const Sizes sizes : kSizes) {
      const AxisWeights weights = weights_for(sizes, filter);
      ASSERT_EQ(weights.targets().size(), sizes.to);
      for (const auto& target : weights.targets()) {
        std::int64_t sum = 0;
        for (std::uint32_t i = 0; i < target.count; ++i) {
          sum += weight_at(weights.quads(target), i);
        }
        EXPECT_NEAR(sum, 1 << kWeightBits, target.count);
        EXPECT_LE(target.first + target.count, weights.count());
      }
      EXPECT_LE(weights.first() + weights.count(), sizes.from);
    }
  }
}

TEST(WeightsTest, OfAWindowAreThoseOfTheWhole) {
  const AxisWeights whole = weights_for({100, 37}, Interpolation::kBicubic);
  AxisWeights window;
  window.assign({100, 0, 100, 37, 12, 9, Interpolation::kBicubic});

  ASSERT_EQ(window.targets().size(), 9u);
  for (std::size_t i = 0; i < 9; ++i) {
    const auto& a = window.targets()[i];
    const auto& b = whole.targets()[i + 12];
    EXPECT_EQ(a.first + window.first(), b.first + whole.first());
    ASSERT_EQ(a.count, b.count);
    for (std::uint32_t t = 0; t < a.count; ++t) {
      EXPECT_EQ(weight_at(window.quads(a), t), weight_at(whole.quads(b), t));
    }
  }
}

TEST(KernelsTest, ResizeRowsAsThePlainLoopDoes) {
  for (const Interpolation filter : kFilters) {
    for (const Sizes sizes : kSizes) {
      for (const std::uint32_t channels : {1u, 3u}) {
        const AxisWeights weights = weights_for(sizes, filter);
        const std::size_t stride = sizes.from * channels + kRowSlackBytes;
        const auto pixels = noise(stride * 7, sizes.from);
        const Rows rows{pixels.data() + weights.first() * channels, stride, 7};
        const std::size_t out_stride = sizes.to * channels + kRowSlackBytes;
        std::vector<std::uint8_t> fast(out_stride * 7);
        std::vector<std::uint8_t> plain(out_stride * 7);

        resize_rows(rows, channels, weights, fast.data(), out_stride);
        portable::resize_rows(rows, channels, weights, plain.data(),
                              out_stride);

        for (std::size_t y = 0; y < 7; ++y) {
          for (std::size_t x = 0; x < sizes.to * channels; ++x) {
            ASSERT_EQ(fast[y * out_stride + x], plain[y * out_stride + x]);
          }
        }
      }
    }
  }
}

TEST(KernelsTest, BlendRowsAsThePlainLoopDoes) {
  for (const Interpolation filter : kFilters) {
    for (const Sizes sizes : kSizes) {
      const AxisWeights weights = weights_for(sizes, filter);
      for (const std::size_t row_bytes : {1u, 31u, 32u, 100u}) {
        const std::size_t stride = row_bytes + kRowSlackBytes;
        const auto pixels = noise(stride * sizes.from, sizes.to);
        std::vector<std::uint8_t> fast(stride);
        std::vector<std::uint8_t> plain(stride);
        for (const auto& target : weights.targets()) {
          const Rows rows{
              pixels.data() + (weights.first() + target.first) * stride, stride,
              target.count};
          const WeightQuad* quads = weights.quads(target);
          blend_rows(rows, quads, row_bytes, fast.data());
          portable::blend_rows(rows, quads, row_bytes, plain.data());
          for (std::size_t x = 0; x < row_bytes; ++x) {
            ASSERT_EQ(fast[x], plain[x]);
          }
        }
      }
    }
  }
}

TEST(KernelsTest, SplitRgbAsThePlainLoopDoes) {
  for (const std::size_t width : {1u, 15u, 16u, 17u, 224u}) {
    for (const int step : {1, -1}) {
      const std::size_t stride =
          (width + kPlaneBlock - 1) / kPlaneBlock * kPlaneBlock;
      const auto rgb = noise(width * 3 + kRowSlackBytes, 3);
      std::vector<std::uint8_t> fast(stride * 3);
      std::vector<std::uint8_t> plain(stride * 3);

      split_rgb(rgb.data(), width, step, fast.data(), stride);
      portable::split_rgb(rgb.data(), width, step, plain.data(), stride);

      const std::size_t skipped = step < 0 ? stride - width : 0;
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t x = 0; x < width; ++x) {
          const std::size_t at = c * stride + skipped + x;
          ASSERT_EQ(fast[at], plain[at]);
        }
      }
    }
  }
}

TEST(KernelsTest, ToFloatIsBitwiseThePlainLoopAndWritesNoMore) {
  for (const std::size_t count : {1u, 3u, 7u, 8u, 9u, 224u, 225u}) {
    const auto bytes = noise(count, 5);
    std::vector<float> fast(count + 16, -7);
    std::vector<float> plain(count + 16, -7);

    to_float(bytes.data(), count, 0.0171247f, -2.117903f, fast.data());
    portable::to_float(bytes.data(), count, 0.0171247f, -2.117903f,
                       plain.data());

    EXPECT_EQ(fast, plain);
  }
}

TEST(KernelsTest, BlendBytesAsThePlainLoopDoesAndWritesNoMore) {
  for (const std::size_t count : {0u, 1u, 7u, 8u, 33u, 100u}) {
    for (const float amount : {-1.5F, 0.0F, 0.37F, 1.0F, 2.9F, 1000.0F}) {
      const std::vector<std::uint8_t> from = noise(count, 1);
      const std::vector<std::uint8_t> to = noise(count, 2);
      std::vector<std::uint8_t> expected(count + 1, 7);
      std::vector<std::uint8_t> got = expected;
      portable::blend_bytes(from.data(), to.data(), count, amount,
                            expected.data());
      blend_bytes(from.data(), to.data(), count, amount, got.data());
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(KernelsTest, AreMadeForThisMachine) {
  RecordProperty("simd_target", simd_target());
  EXPECT_STRNE(simd_target(), "");
}

}  // namespace
}  // namespace leat
