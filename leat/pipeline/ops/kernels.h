// The loops that touch every pixel, in SIMD; the best set that the machine has
// is chosen at run time. All are exact in integers, and their floats take one
// multiplication and one addition, each rounded: every machine gets the same
// bytes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "leat/pipeline/ops/weights.h"

namespace leat {

/// How far past the end of a row these loops may read or write.
inline constexpr std::size_t kRowSlackBytes = 64;

/// Rows of interleaved bytes.
struct Rows {
  const std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  std::uint32_t count = 0;
};

/// Resizes each row along x. Writes `rows.count` rows, `into_stride` apart.
void resize_rows(const Rows& rows, std::uint32_t channels,
                 const AxisWeights& weights, std::uint8_t* into,
                 std::size_t into_stride);

/// The weighted mean of all `rows`, byte by byte: one row of `row_bytes`.
/// `quads` has a weight for each of them.
void blend_rows(const Rows& rows, const WeightQuad* quads,
                std::size_t row_bytes, std::uint8_t* into);

/// Splits a row of RGB into three planes, `plane_stride` apart; from right to
/// left if `step` is -1. Writes in whole blocks of kPlaneBlock pixels: mirrored
/// pixels begin behind the unused rest of the last block.
inline constexpr std::size_t kPlaneBlock = 16;
void split_rgb(const std::uint8_t* rgb, std::size_t width, int step,
               std::uint8_t* planes, std::size_t plane_stride);

/// into[i] = from[i] * scale + bias. Writes exactly `count` floats.
void to_float(const std::uint8_t* from, std::size_t count, float scale,
              float bias, float* into);

/// into[i] = from[i] + amount * (to[i] - from[i]), clamped to 0 … 255. `into`
/// may be `from` or `to`. Writes exactly `count` bytes.
void blend_bytes(const std::uint8_t* from, const std::uint8_t* to,
                 std::size_t count, float amount, std::uint8_t* into);

/// The instruction set that was chosen for the loops here: "AVX2", "NEON",
/// …
const char* simd_target();

}  // namespace leat
