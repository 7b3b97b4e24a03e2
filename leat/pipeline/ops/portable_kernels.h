// Plain versions of the loops in kernels.h: for machines without SIMD, and for
// tests to compare the fast ones with.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "leat/pipeline/ops/kernels.h"

namespace leat::portable {

inline std::uint8_t byte_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

/// The weighted sum of bytes that are `step` apart.
inline std::uint8_t weighted_mean(const std::uint8_t* from, std::size_t step,
                                  const WeightQuad* quads,
                                  std::uint32_t count) {
  std::int32_t sum = 1 << (kWeightBits - 1);
  for (std::uint32_t tap = 0; tap < count; ++tap) {
    sum += weight_at(quads, tap) * from[tap * step];
  }
  return byte_of(sum);
}

inline void resize_rows(const Rows& rows, std::uint32_t channels,
                        const AxisWeights& weights, std::uint8_t* into,
                        std::size_t into_stride) {
  for (std::uint32_t y = 0; y < rows.count; ++y) {
    std::uint8_t* out = into + y * into_stride;
    for (const AxisWeights::Target& target : weights.targets()) {
      const std::uint8_t* from = rows.data + y * rows.stride_bytes +
                                 std::size_t{target.first} * channels;
      for (std::uint32_t c = 0; c < channels; ++c) {
        *out++ = weighted_mean(from + c, channels, weights.quads(target),
                               target.count);
      }
    }
  }
}

inline void blend_rows(const Rows& rows, const WeightQuad* quads,
                       std::size_t row_bytes, std::uint8_t* into) {
  for (std::size_t x = 0; x < row_bytes; ++x) {
    into[x] =
        weighted_mean(rows.data + x, rows.stride_bytes, quads, rows.count);
  }
}

inline void split_rgb(const std::uint8_t* rgb, std::size_t width, int step,
                      std::uint8_t* planes, std::size_t plane_stride) {
  const std::size_t whole =
      (width + kPlaneBlock - 1) / kPlaneBlock * kPlaneBlock;
  for (std::size_t x = 0; x < width; ++x) {
    const std::size_t at = step < 0 ? whole - 1 - x : x;
    for (std::size_t c = 0; c < 3; ++c) {
      planes[c * plane_stride + at] = rgb[x * 3 + c];
    }
  }
}

inline void to_float(const std::uint8_t* from, std::size_t count, float scale,
                     float bias, float* into) {
  for (std::size_t i = 0; i < count; ++i) {
    into[i] = static_cast<float>(from[i]) * scale + bias;
  }
}

/// One byte of blend_bytes().
inline std::uint8_t blended(int from, int to, float amount) {
  const float value =
      static_cast<float>(from) + amount * static_cast<float>(to - from);
  if (value <= 0) return 0;
  return value >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(value);
}

inline void blend_bytes(const std::uint8_t* from, const std::uint8_t* to,
                        std::size_t count, float amount, std::uint8_t* into) {
  for (std::size_t i = 0; i < count; ++i) {
    into[i] = blended(from[i], to[i], amount);
  }
}

}  // namespace leat::portable
