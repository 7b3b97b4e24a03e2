// From colour to grey.
#pragma once
#include <cstdint>

namespace leat {

/// ITU-R 601 luma by Pillow's weights in 16 bits, for `width` pixels.
inline void rgb_to_grey(const std::uint8_t* rgb, std::uint8_t* grey,
                        std::uint32_t width) {
  for (std::uint32_t i = 0; i < width; ++i, rgb += 3) {
    const std::uint32_t luma =
        rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u;
    grey[i] = static_cast<std::uint8_t>(luma >> 16);
  }
}

}  // namespace leat
