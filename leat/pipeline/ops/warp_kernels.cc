// Compiled once for each instruction set, as kernels.cc.
//
// The channels of a pixel lie side by side in one vector or two; the byte
// behind them is computed, too, and written over by the next pixel.

#include "leat/pipeline/ops/warp_kernels.h"

#include <algorithm>

#include "leat/pipeline/ops/place_between.h"

#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "leat/pipeline/ops/warp_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace leat {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kItems = 4;  // Three channels, and one more.
constexpr std::size_t kTaps = 4;
using DD = hn::CappedTag<double, kItems>;
using DI = hn::Rebind<std::int32_t, DD>;
using DB = hn::Rebind<std::uint8_t, DD>;
using VD = hn::VFromD<DD>;
constexpr std::size_t kLanes = hn::MaxLanes(DD());

HWY_INLINE VD load(const std::uint8_t* bytes) {
  return hn::PromoteTo(DD(), hn::PromoteTo(DI(), hn::LoadU(DB(), bytes)));
}

/// Keys' cubic with a = -1, as Pillow has it for transforms, in its order.
HWY_INLINE VD cubic(VD a, VD b, VD c, VD d, VD part) {
  const VD linear = hn::Sub(c, a);
  const VD twice = hn::Mul(hn::Set(DD(), 2.0), hn::Sub(a, b));
  const VD square = hn::Sub(hn::Add(twice, c), d);
  const VD cube = hn::Add(hn::Sub(hn::Sub(b, a), c), d);
  VD value = hn::Add(square, hn::Mul(part, cube));
  value = hn::Add(linear, hn::Mul(part, value));
  return hn::Add(b, hn::Mul(part, value));
}

HWY_INLINE void store(VD value, std::uint8_t* bytes) {
  hn::StoreU(hn::DemoteTo(DB(), hn::DemoteTo(DI(), value)), DB(), bytes);
}

/// The value that lies `part` of the way from `a` to `b`, in Pillow's order.
HWY_INLINE VD linear(VD a, VD b, VD part) {
  return hn::Add(a, hn::Mul(hn::Sub(b, a), part));
}

/// The four pixels around a place; those of the border count also for what lies
/// beyond it.
HWY_INLINE void put_linear(const ColourView& from, double at_x, double at_y,
                           std::uint8_t* into) {
  const PlaceBetween x(at_x);
  const PlaceBetween y(at_y);
  const auto right = std::int64_t{from.width} - 1;
  const auto bottom = std::int64_t{from.height} - 1;
  const std::size_t columns[2] = {
      static_cast<std::size_t>(std::max<std::int64_t>(x.before, 0)) * 3,
      static_cast<std::size_t>(std::min(x.before + 1, right)) * 3};
  const std::uint8_t* const upper =
      from.data +
      static_cast<std::size_t>(std::max<std::int64_t>(y.before, 0)) *
          from.stride_bytes;
  const std::uint8_t* const lower =
      from.data + static_cast<std::size_t>(std::min(y.before + 1, bottom)) *
                      from.stride_bytes;
  const VD part_x = hn::Set(DD(), x.part);
  const VD part_y = hn::Set(DD(), y.part);
  for (std::size_t at = 0; at < kItems; at += kLanes) {
    const VD above = linear(load(upper + columns[0] + at),
                            load(upper + columns[1] + at), part_x);
    const VD below = linear(load(lower + columns[0] + at),
                            load(lower + columns[1] + at), part_x);
    store(linear(above, below, part_y), into + at);
  }
}

HWY_INLINE void put_cubic(const ColourView& from, double at_x, double at_y,
                          std::uint8_t* into) {
  const PlaceBetween place_x(at_x);
  const PlaceBetween place_y(at_y);
  const std::int64_t x = place_x.before;
  const std::int64_t y = place_y.before;
  const VD part_x = hn::Set(DD(), place_x.part);
  const VD part_y = hn::Set(DD(), place_y.part);
  const std::uint8_t* rows[kTaps];
  std::size_t columns[kTaps];
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(kTaps); ++i) {
    const auto row = std::clamp<std::int64_t>(y - 1 + i, 0, from.height - 1);
    const auto column = std::clamp<std::int64_t>(x - 1 + i, 0, from.width - 1);
    rows[i] = from.data + static_cast<std::size_t>(row) * from.stride_bytes;
    columns[i] = static_cast<std::size_t>(column) * 3;
  }
  for (std::size_t at = 0; at < kItems; at += kLanes) {
    VD of_row[kTaps];
    for (std::size_t i = 0; i < kTaps; ++i) {
      const std::uint8_t* row = rows[i] + at;
      of_row[i] = cubic(load(row + columns[0]), load(row + columns[1]),
                        load(row + columns[2]), load(row + columns[3]), part_x);
    }
    const VD value = cubic(of_row[0], of_row[1], of_row[2], of_row[3], part_y);
    const VD within =
        hn::Min(hn::Max(value, hn::Zero(DD())), hn::Set(DD(), 255.0));
    store(within, into + at);
  }
}

using Put = void(const ColourView&, double, double, std::uint8_t*);

template <Put put>
HWY_INLINE void warp_rgb(const ColourView& from, const AffineMatrix& m,
                         const FillColour& fill, const ColourView& into) {
  for (std::uint32_t y = 0; y < into.height; ++y) {
    std::uint8_t* pixel = into.data + y * into.stride_bytes;
    const double middle_y = y + 0.5;
    for (std::uint32_t x = 0; x < into.width; ++x, pixel += 3) {
      const double middle_x = x + 0.5;
      const double at_x = m[0] * middle_x + m[1] * middle_y + m[2];
      const double at_y = m[3] * middle_x + m[4] * middle_y + m[5];
      if (at_x >= 0 && at_x < from.width && at_y >= 0 && at_y < from.height) {
        put(from, at_x, at_y, pixel);
      } else {
        std::copy_n(fill.begin(), 3, pixel);
      }
    }
  }
}

void warp_linear_rgb(const ColourView& from, const AffineMatrix& m,
                     const FillColour& fill, const ColourView& into) {
  warp_rgb<put_linear>(from, m, fill, into);
}

void warp_cubic_rgb(const ColourView& from, const AffineMatrix& m,
                    const FillColour& fill, const ColourView& into) {
  warp_rgb<put_cubic>(from, m, fill, into);
}

}  // namespace HWY_NAMESPACE
}  // namespace leat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leat {

HWY_EXPORT(warp_linear_rgb);
HWY_EXPORT(warp_cubic_rgb);

void warp_linear_rgb(const ColourView& from, const AffineMatrix& matrix,
                     const FillColour& fill, const ColourView& into) {
  HWY_DYNAMIC_DISPATCH(warp_linear_rgb)(from, matrix, fill, into);
}

void warp_cubic_rgb(const ColourView& from, const AffineMatrix& matrix,
                    const FillColour& fill, const ColourView& into) {
  HWY_DYNAMIC_DISPATCH(warp_cubic_rgb)(from, matrix, fill, into);
}

}  // namespace leat
#endif
