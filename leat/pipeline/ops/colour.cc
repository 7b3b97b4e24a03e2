#include "leat/pipeline/ops/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "leat/codec/image/grey.h"

namespace leat {
namespace {

using Table = std::array<std::uint8_t, 256>;

/// From one byte towards another, or past it; cut off, not rounded.
std::uint8_t blend(int from, int to, float amount) {
  const float value =
      static_cast<float>(from) + amount * static_cast<float>(to - from);
  if (value <= 0) return 0;
  return value >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(value);
}

Table blend_from(int from, float amount) {
  Table table;
  for (int to = 0; to < 256; ++to) {
    table[static_cast<std::size_t>(to)] = blend(from, to, amount);
  }
  return table;
}

template <class ChangeRow>
void for_each_row(const ColourView& picture, const ChangeRow& change) {
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    change(picture.data + y * picture.stride_bytes);
  }
}

void look_up(const ColourView& picture, const Table& table) {
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  for_each_row(picture, [&](std::uint8_t* row) {
    for (std::size_t i = 0; i < row_bytes; ++i) row[i] = table[row[i]];
  });
}

std::uint8_t grey_of(const std::uint8_t* rgb) {
  std::uint8_t grey = 0;
  rgb_to_grey(rgb, &grey, 1);
  return grey;
}

/// Of the picture in grey, rounded.
int mean_grey(const ColourView& picture) {
  std::uint64_t sum = 0;
  for_each_row(picture, [&](const std::uint8_t* row) {
    for (std::uint32_t x = 0; x < picture.width; ++x) {
      sum += picture.channels == 3 ? grey_of(row + std::size_t{x} * 3) : row[x];
    }
  });
  const double pixels = static_cast<double>(picture.width) * picture.height;
  return static_cast<int>(std::lround(static_cast<double>(sum) / pixels));
}

void saturate(const ColourView& picture, float amount) {
  for_each_row(picture, [&](std::uint8_t* row) {
    for (std::uint32_t x = 0; x < picture.width; ++x, row += 3) {
      const int grey = grey_of(row);
      for (int c = 0; c < 3; ++c) row[c] = blend(grey, row[c], amount);
    }
  });
}

struct Hsv {
  std::uint8_t h = 0;
  std::uint8_t s = 0;
  std::uint8_t v = 0;
};

// Which operations are float and which are double is Pillow's: a hue that is
// off by one changes a byte by up to six.
Hsv to_hsv(const std::uint8_t* rgb) {
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

void to_rgb(const Hsv& hsv, std::uint8_t* rgb) {
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

void turn_hue(const ColourView& picture, double amount) {
  // Of 255 steps, not 256, as Pillow counts them; wraps around.
  const auto steps =
      static_cast<std::uint8_t>(static_cast<int>(amount * 255) & 0xff);
  for_each_row(picture, [&](std::uint8_t* row) {
    for (std::uint32_t x = 0; x < picture.width; ++x, row += 3) {
      Hsv hsv = to_hsv(row);
      hsv.h = static_cast<std::uint8_t>(hsv.h + steps);
      to_rgb(hsv, row);
    }
  });
}

void change(const ColourView& picture, const ColourChange& change) {
  const auto amount = static_cast<float>(change.amount);
  switch (change.kind) {
    case ColourKind::kBrightness:
      return look_up(picture, blend_from(0, amount));
    case ColourKind::kContrast:
      return look_up(picture, blend_from(mean_grey(picture), amount));
    case ColourKind::kSaturation:
      if (picture.channels == 3) saturate(picture, amount);
      return;
    case ColourKind::kHue:
      if (picture.channels == 3) turn_hue(picture, change.amount);
      return;
  }
}

}  // namespace

void change_colours(const ColourView& picture,
                    std::span<const ColourChange> changes) {
  for (const ColourChange& one : changes) change(picture, one);
}

}  // namespace leat
