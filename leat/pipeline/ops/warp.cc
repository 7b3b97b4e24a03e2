#include "leat/pipeline/ops/warp.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "leat/base/check.h"
#include "leat/pipeline/ops/place_between.h"
#include "leat/pipeline/ops/warp_kernels.h"

namespace leat {
namespace {

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

/// As Python's round(value, 15): a product with 1e15 would be rounded before
/// it. REQUIRES: |value| <= 1.
double round_to_15_digits(double value) {
  std::array<char, 32> text;
  const auto [end, failed] = std::to_chars(
      text.data(), text.data() + text.size(), value, std::chars_format::fixed,
      /*precision=*/15);
  LEAT_CHECK(failed == std::errc());
  double rounded = 0;
  std::from_chars(text.data(), end, rounded);
  return rounded;
}

void fill_pixels(const FillColour& fill, std::uint32_t count,
                 std::uint32_t channels, std::uint8_t* into) {
  for (std::uint32_t i = 0; i < count; ++i, into += channels) {
    std::copy_n(fill.begin(), channels, into);
  }
}

/// For a fixed-point number with 16 bits behind the point that grows by `step`:
/// the places [first, end) at which it is within [0, size).
struct PlaceRange {
  std::int64_t first = 0;
  std::int64_t end = 0;

  void narrow_to(std::int64_t at, std::int64_t step, std::int64_t size) {
    const std::int64_t limit = size << 16;
    if (step == 0) {
      if (at < 0 || at >= limit) end = first;
      return;
    }
    const auto floor_div = [](std::int64_t a, std::int64_t b) {
      return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
    };
    // at + i * step >= 0 and at + i * step <= limit - 1
    const std::int64_t a = step > 0 ? -at : at - limit + 1;
    const std::int64_t b = step > 0 ? limit - 1 - at : at;
    const std::int64_t length = std::abs(step);
    first = std::min(std::max(first, -floor_div(-a, length)), end);
    end = std::max(std::min(end, floor_div(b, length) + 1), first);
  }
};

std::int64_t to_fixed(double value) {
  return static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5));
}

/// In 16.16 fixed point, as Pillow: each row begins where the one before did,
/// and a step further. REQUIRES: fits_fixed_point(m, into).
template <std::uint32_t kChannels>
void warp_nearest(const ColourView& from, const AffineMatrix& m,
                  const FillColour& fill, const ColourView& into) {
  const std::int64_t step_x = to_fixed(m[0]);
  const std::int64_t step_y = to_fixed(m[3]);
  std::int64_t row_x = to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  for (std::uint32_t y = 0; y < into.height; ++y) {
    std::uint8_t* out = into.data + y * into.stride_bytes;
    PlaceRange range{0, into.width};
    range.narrow_to(row_x, step_x, from.width);
    range.narrow_to(row_y, step_y, from.height);
    const auto first = static_cast<std::uint32_t>(range.first);
    const auto end = static_cast<std::uint32_t>(range.end);
    fill_pixels(fill, first, kChannels, out);
    std::int64_t at_x = row_x + range.first * step_x;
    std::int64_t at_y = row_y + range.first * step_y;
    std::uint8_t* pixel = out + std::size_t{first} * kChannels;
    for (std::uint32_t x = first; x < end; ++x, pixel += kChannels) {
      const std::uint8_t* source =
          from.data + static_cast<std::size_t>(at_y >> 16) * from.stride_bytes +
          static_cast<std::size_t>(at_x >> 16) * kChannels;
      // A fourth byte is overwritten by the next pixel.
      std::memcpy(pixel, source, kChannels == 3 ? 4 : 1);
      at_x += step_x;
      at_y += step_y;
    }
    fill_pixels(fill, into.width - end, kChannels,
                out + std::size_t{end} * kChannels);
    row_x += to_fixed(m[1]);
    row_y += to_fixed(m[4]);
  }
}

/// Whether fixed point has a number for each place; not if a shear or a centre
/// is out of all measure.
bool fits_fixed_point(const AffineMatrix& m, const ColourView& into) {
  const auto reach = [&](std::size_t row) {
    return std::abs(m[row]) * into.width + std::abs(m[row + 1]) * into.height +
           std::abs(m[row + 2]);
  };
  constexpr double kMost = 0x1p46;
  return reach(0) < kMost && reach(3) < kMost;
}

/// Pixel by pixel, wherever their places are.
template <std::uint32_t kChannels>
void warp_nearest_far(const ColourView& from, const AffineMatrix& m,
                      const FillColour& fill, const ColourView& into) {
  for (std::uint32_t y = 0; y < into.height; ++y) {
    std::uint8_t* pixel = into.data + y * into.stride_bytes;
    const double middle_y = y + 0.5;
    for (std::uint32_t x = 0; x < into.width; ++x, pixel += kChannels) {
      const double middle_x = x + 0.5;
      const double at_x = m[0] * middle_x + m[1] * middle_y + m[2];
      const double at_y = m[3] * middle_x + m[4] * middle_y + m[5];
      const std::uint8_t* source = fill.data();
      if (at_x >= 0 && at_x < from.width && at_y >= 0 && at_y < from.height) {
        source = from.data +
                 static_cast<std::size_t>(at_y) * from.stride_bytes +
                 static_cast<std::size_t>(at_x) * kChannels;
      }
      std::copy_n(source, kChannels, pixel);
    }
  }
}

/// The scaling of Pillow, for a matrix that neither turns nor shears: places
/// are summed up in double.
template <std::uint32_t kChannels>
void scale_nearest(const ColourView& from, const AffineMatrix& m,
                   const FillColour& fill, const ColourView& into) {
  std::vector<std::int64_t> columns(into.width);
  const auto place_in = [](double at, std::uint32_t size) {
    return at >= 0 && at < size ? static_cast<std::int64_t>(at) : -1;
  };
  double at_x = m[2] + m[0] * 0.5;
  for (std::int64_t& column : columns) {
    column = place_in(at_x, from.width);
    at_x += m[0];
  }
  double at_y = m[5] + m[4] * 0.5;
  for (std::uint32_t y = 0; y < into.height; ++y, at_y += m[4]) {
    std::uint8_t* pixel = into.data + y * into.stride_bytes;
    const std::int64_t row = place_in(at_y, from.height);
    if (row < 0) {
      fill_pixels(fill, into.width, kChannels, pixel);
      continue;
    }
    const std::uint8_t* source =
        from.data + static_cast<std::size_t>(row) * from.stride_bytes;
    for (const std::int64_t column : columns) {
      if (column < 0) {
        std::copy_n(fill.begin(), kChannels, pixel);
      } else {
        std::copy_n(source + static_cast<std::size_t>(column) * kChannels,
                    kChannels, pixel);
      }
      pixel += kChannels;
    }
  }
}

/// The value that lies `part` of the way from `a` to `b`, in Pillow's order.
double linear(double a, double b, double part) { return a + (b - a) * part; }

/// In grey. Four pixels count, cut off like Pillow, not rounded; those of the
/// border also for what lies beyond it.
void put_linear(const ColourView& from, double at_x, double at_y,
                std::uint8_t* into) {
  const PlaceBetween x(at_x);
  const PlaceBetween y(at_y);
  const auto value_of_row = [&](std::int64_t row) {
    const auto clamped = std::clamp<std::int64_t>(row, 0, from.height - 1);
    const std::uint8_t* bytes =
        from.data + static_cast<std::size_t>(clamped) * from.stride_bytes;
    const std::int64_t right =
        std::min<std::int64_t>(x.before + 1, from.width - 1);
    return linear(bytes[std::max<std::int64_t>(x.before, 0)], bytes[right],
                  x.part);
  };
  *into = static_cast<std::uint8_t>(
      linear(value_of_row(y.before), value_of_row(y.before + 1), y.part));
}

/// Keys' cubic with a = -1, as Pillow has it for transforms, in its order: what
/// lies `part` of the way from `b` to `c`.
double cubic(double a, double b, double c, double d, double part) {
  const double linear = c - a;
  const double square = 2 * (a - b) + c - d;
  const double cube = -a + b - c + d;
  return b + part * (linear + part * (square + part * cube));
}

/// In grey. Sixteen pixels count; those of the border also for what lies beyond
/// it.
void put_cubic(const ColourView& from, double at_x, double at_y,
               std::uint8_t* into) {
  const PlaceBetween place_x(at_x);
  const PlaceBetween place_y(at_y);
  const std::int64_t x = place_x.before;
  const std::int64_t y = place_y.before;
  const double part_x = place_x.part;
  const double part_y = place_y.part;
  const std::uint8_t* rows[4];
  std::size_t columns[4];
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto row = std::clamp<std::int64_t>(y - 1 + i, 0, from.height - 1);
    const auto column = std::clamp<std::int64_t>(x - 1 + i, 0, from.width - 1);
    rows[i] = from.data + static_cast<std::size_t>(row) * from.stride_bytes;
    columns[i] = static_cast<std::size_t>(column);
  }
  double of_row[4];
  for (std::size_t i = 0; i < 4; ++i) {
    of_row[i] = cubic(rows[i][columns[0]], rows[i][columns[1]],
                      rows[i][columns[2]], rows[i][columns[3]], part_x);
  }
  const double value =
      cubic(of_row[0], of_row[1], of_row[2], of_row[3], part_y);
  *into = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
}

/// In grey.
template <Interpolation kInterpolation>
void warp_smoothly(const ColourView& from, const AffineMatrix& m,
                   const FillColour& fill, const ColourView& into) {
  for (std::uint32_t y = 0; y < into.height; ++y) {
    std::uint8_t* pixel = into.data + y * into.stride_bytes;
    const double middle_y = y + 0.5;
    for (std::uint32_t x = 0; x < into.width; ++x, ++pixel) {
      const double middle_x = x + 0.5;
      const double at_x = m[0] * middle_x + m[1] * middle_y + m[2];
      const double at_y = m[3] * middle_x + m[4] * middle_y + m[5];
      if (at_x >= 0 && at_x < from.width && at_y >= 0 && at_y < from.height) {
        if constexpr (kInterpolation == Interpolation::kBicubic) {
          put_cubic(from, at_x, at_y, pixel);
        } else {
          put_linear(from, at_x, at_y, pixel);
        }
      } else {
        *pixel = fill[0];
      }
    }
  }
}

template <std::uint32_t kChannels>
void warp_with(const ColourView& from, const AffineMatrix& matrix,
               Interpolation interpolation, const FillColour& fill,
               const ColourView& into) {
  if (interpolation == Interpolation::kBicubic) {
    if constexpr (kChannels == 3) {
      warp_cubic_rgb(from, matrix, fill, into);
    } else {
      warp_smoothly<Interpolation::kBicubic>(from, matrix, fill, into);
    }
  } else if (interpolation == Interpolation::kBilinear) {
    if constexpr (kChannels == 3) {
      warp_linear_rgb(from, matrix, fill, into);
    } else {
      warp_smoothly<Interpolation::kBilinear>(from, matrix, fill, into);
    }
  } else if (matrix[1] == 0 && matrix[3] == 0) {
    scale_nearest<kChannels>(from, matrix, fill, into);
  } else if (!fits_fixed_point(matrix, into)) {
    warp_nearest_far<kChannels>(from, matrix, fill, into);
  } else {
    warp_nearest<kChannels>(from, matrix, fill, into);
  }
}

}  // namespace

AffineMatrix affine_matrix(const AffineParams& params, double center_x,
                           double center_y) {
  const double turn = radians(params.angle);
  const double shear_x = radians(params.shear[0]);
  const double shear_y = radians(params.shear[1]);
  const double a = std::cos(turn - shear_y) / std::cos(shear_y);
  const double b =
      -std::cos(turn - shear_y) * std::tan(shear_x) / std::cos(shear_y) -
      std::sin(turn);
  const double c = std::sin(turn - shear_y) / std::cos(shear_y);
  const double d =
      -std::sin(turn - shear_y) * std::tan(shear_x) / std::cos(shear_y) +
      std::cos(turn);
  AffineMatrix m = {d, -b, 0, -c, a, 0};
  for (double& number : m) number /= params.scale;
  const double from_x = -center_x - params.translate[0];
  const double from_y = -center_y - params.translate[1];
  m[2] += m[0] * from_x + m[1] * from_y;
  m[5] += m[3] * from_x + m[4] * from_y;
  m[2] += center_x;
  m[5] += center_y;
  return m;
}

Rotation rotation_of(std::uint32_t width, std::uint32_t height, double degrees,
                     const RandomRotationOp& op) {
  double positive = std::fmod(degrees, 360.0);
  if (positive < 0) positive += 360.0;
  const double turn = -radians(positive);
  const double cosine = round_to_15_digits(std::cos(turn));
  const double sine = round_to_15_digits(std::sin(turn));
  AffineMatrix m = {cosine, sine, 0, -sine, cosine, 0};
  const auto at = [&m](double x, double y) {
    return std::array<double, 2>{m[0] * x + m[1] * y + m[2],
                                 m[3] * x + m[4] * y + m[5]};
  };
  const std::array<double, 2> center = op.style.center.value_or(
      std::array<double, 2>{width / 2.0, height / 2.0});
  const auto moved = at(-center[0], -center[1]);
  m[2] = moved[0] + center[0];
  m[5] = moved[1] + center[1];
  if (!op.expand) return {m, width, height};

  std::array<double, 2> low = at(0, 0);
  std::array<double, 2> high = low;
  for (const auto& [x, y] : {std::array<double, 2>{width + 0.0, 0.0},
                             {width + 0.0, height + 0.0},
                             {0.0, height + 0.0}}) {
    const auto corner = at(x, y);
    for (std::size_t i = 0; i < 2; ++i) {
      low[i] = std::min(low[i], corner[i]);
      high[i] = std::max(high[i], corner[i]);
    }
  }
  double new_width = std::ceil(high[0]) - std::floor(low[0]);
  double new_height = std::ceil(high[1]) - std::floor(low[1]);
  if (cosine == 0 && !op.style.center) {  // A quarter turn: nothing is between.
    new_width = height;
    new_height = width;
  }
  const auto shifted =
      at(-(new_width - width) / 2.0, -(new_height - height) / 2.0);
  m[2] = shifted[0];
  m[5] = shifted[1];
  return {m, static_cast<std::uint32_t>(new_width),
          static_cast<std::uint32_t>(new_height)};
}

void warp(const ColourView& from, const AffineMatrix& matrix,
          Interpolation interpolation, const FillColour& fill,
          const ColourView& into) {
  if (from.channels == 3) {
    warp_with<3>(from, matrix, interpolation, fill, into);
  } else {
    warp_with<1>(from, matrix, interpolation, fill, into);
  }
}

}  // namespace leat
