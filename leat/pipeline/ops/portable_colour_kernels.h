// Plain versions of the loops in colour_kernels.h: for machines without SIMD,
// and for tests to compare the fast ones with.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "leat/codec/image/grey.h"
#include "leat/pipeline/ops/portable_kernels.h"

namespace leat::portable {

inline void grey_of_rgb(const std::uint8_t* rgb, std::size_t width,
                        std::uint8_t* grey) {
  rgb_to_grey(rgb, grey, static_cast<std::uint32_t>(width));
}

inline void first_of_rgb(const std::uint8_t* rgb, std::size_t width,
                         std::uint8_t* into) {
  for (std::size_t x = 0; x < width; ++x) into[x] = rgb[x * 3];
}

inline void make_rgb_grey(const std::uint8_t* rgb, std::size_t width,
                          std::uint8_t* into) {
  for (std::size_t x = 0; x < width; ++x, rgb += 3, into += 3) {
    std::uint8_t grey = 0;
    rgb_to_grey(rgb, &grey, 1);
    into[0] = into[1] = into[2] = grey;
  }
}

inline void saturate_rgb(std::uint8_t* rgb, std::size_t width, float amount) {
  for (std::size_t x = 0; x < width; ++x, rgb += 3) {
    std::uint8_t grey = 0;
    rgb_to_grey(rgb, &grey, 1);
    for (std::size_t c = 0; c < 3; ++c) rgb[c] = blended(grey, rgb[c], amount);
  }
}

struct Hsv {
  std::uint8_t h = 0;
  std::uint8_t s = 0;
  std::uint8_t v = 0;
};

// Pillow determines which operations are float and which are double: a hue that
// is off by one changes a byte by up to six.
inline Hsv to_hsv(const std::uint8_t* rgb) {
  const int most = std::max({rgb[0], rgb[1], rgb[2]});
  const int range = most - std::min({rgb[0], rgb[1], rgb[2]});
  Hsv hsv{0, 0, static_cast<std::uint8_t>(most)};
  if (range == 0) return hsv;
  const auto below = [&](int channel) {
    return static_cast<float>(most - channel) / static_cast<float>(range);
  };
  const float r = below(rgb[0]);
  const float g = below(rgb[1]);
  const float b = below(rgb[2]);
  float hue = 0;
  if (rgb[0] == most) {
    hue = b - g;
  } else if (rgb[1] == most) {
    hue = static_cast<float>(2.0 + r - b);
  } else {
    hue = static_cast<float>(4.0 + g - r);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  const float saturation = static_cast<float>(range) / static_cast<float>(most);
  hsv.h = static_cast<std::uint8_t>(hue * 255.0);
  hsv.s = static_cast<std::uint8_t>(saturation * 255.0);
  return hsv;
}

inline void to_rgb(const Hsv& hsv, std::uint8_t* rgb) {
  const double turned = static_cast<float>(hsv.h) * 6.0 / 255.0;
  const int sextant = static_cast<int>(std::floor(turned));
  const auto part = static_cast<float>(turned - sextant);
  const auto saturation = static_cast<float>(hsv.s / 255.0);
  const auto level = [&](double share) {
    return static_cast<std::uint8_t>(std::round(hsv.v * share));
  };
  const std::uint8_t v = hsv.v;
  const std::uint8_t p = level(1.0 - saturation);
  const std::uint8_t q = level(1.0 - saturation * part);
  const std::uint8_t t = level(1.0 - saturation * (1.0 - part));
  const std::uint8_t sextants[6][3] = {{v, t, p}, {q, v, p}, {p, v, t},
                                       {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(sextants[sextant % 6], 3, rgb);
}

inline void turn_hue(std::uint8_t* rgb, std::size_t width, std::uint8_t steps) {
  for (std::size_t x = 0; x < width; ++x, rgb += 3) {
    Hsv hsv = to_hsv(rgb);
    hsv.h = static_cast<std::uint8_t>(hsv.h + steps);
    to_rgb(hsv, rgb);
  }
}

inline void blend_from(int from, std::uint8_t* bytes, std::size_t count,
                       float amount) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = blended(from, bytes[i], amount);
  }
}

inline void invert_from(int threshold, std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] >= threshold) bytes[i] = static_cast<std::uint8_t>(~bytes[i]);
  }
}

inline void mirror_row(const std::uint8_t* from, std::size_t width,
                       std::uint32_t channels, std::uint8_t* into) {
  for (std::size_t x = 0; x < width; ++x) {
    std::copy_n(from + (width - 1 - x) * channels, channels,
                into + x * channels);
  }
}

}  // namespace leat::portable
