// Floats of 16 bits. Made of float32, they are the nearest, halves to even, as
// NumPy, torch and ml_dtypes make them.
#pragma once
#include <bit>
#include <cstdint>

namespace leat {

/// The bits of an IEEE binary16. From 65,520 on it is infinite.
inline std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fff'ffff;
  std::uint32_t half = 0;
  if (magnitude > 0x7f80'0000) {
    half = 0x7e00;  // No number.
  } else if (magnitude >= std::bit_cast<std::uint32_t>(65'520.0f)) {
    half = 0x7c00;
  } else if (magnitude < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    // A subnormal. Floats next to 0.5 are as far apart as subnormal halves, so
    // the addition rounds to one.
    const float beside = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(beside) -
           std::bit_cast<std::uint32_t>(0.5f);
  } else {
    constexpr std::uint32_t kRebias = (127 - 15) << 23;
    const std::uint32_t is_odd = magnitude >> 13 & 1;
    half = (magnitude - kRebias + 0xfff + is_odd) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// The value of an IEEE binary16, exactly.
inline float of_float16(std::uint16_t half) {
  const auto sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const auto magnitude = static_cast<std::uint32_t>(half & 0x7fff);
  constexpr std::uint32_t kRebias = (127 - 15) << 23;
  std::uint32_t bits = (magnitude << 13) + kRebias;
  if (magnitude >= 0x7c00) {
    bits += kRebias;  // Infinite, or no number.
  } else if (magnitude < 0x0400) {
    // A subnormal counts the steps of a float next to 0.5.
    const std::uint32_t beside = magnitude + std::bit_cast<std::uint32_t>(0.5f);
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(beside) - 0.5f);
  }
  return std::bit_cast<float>(sign | bits);
}

/// The upper 16 bits of a float32.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fff'ffff) > 0x7f80'0000) {
    return static_cast<std::uint16_t>(bits >> 16 | 0x40);  // No number.
  }
  const std::uint32_t is_odd = bits >> 16 & 1;
  return static_cast<std::uint16_t>((bits + 0x7fff + is_odd) >> 16);
}

inline float of_bfloat16(std::uint16_t upper) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
}

}  // namespace leat
