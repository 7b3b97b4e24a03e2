// Compiled once for each instruction set, as kernels.cc.
//
// The channels of a pixel lie side by side in one vector or two; the byte
// behind them is computed, too, and written over by the next pixel.

#include "leat/pipeline/ops/cubic_kernels.h"

#include <algorithm>

#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "leat/pipeline/ops/cubic_kernels.cc"
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

/// REQUIRES: at_x and at_y are not negative. Then a cast rounds down.
HWY_INLINE void put_cubic(const ColourView& from, double at_x, double at_y,
                          std::uint8_t* into) {
  const auto x = static_cast<std::int64_t>(at_x + 0.5) - 1;
  const auto y = static_cast<std::int64_t>(at_y + 0.5) - 1;
  const VD part_x = hn::Set(DD(), at_x - 0.5 - static_cast<double>(x));
  const VD part_y = hn::Set(DD(), at_y - 0.5 - static_cast<double>(y));
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
    hn::StoreU(hn::DemoteTo(DB(), hn::DemoteTo(DI(), within)), DB(), into + at);
  }
}

void warp_cubic_rgb(const ColourView& from, const AffineMatrix& m,
                    const FillColour& fill, const ColourView& into) {
  for (std::uint32_t y = 0; y < into.height; ++y) {
    std::uint8_t* pixel = into.data + y * into.stride_bytes;
    const double middle_y = y + 0.5;
    for (std::uint32_t x = 0; x < into.width; ++x, pixel += 3) {
      const double middle_x = x + 0.5;
      const double at_x = m[0] * middle_x + m[1] * middle_y + m[2];
      const double at_y = m[3] * middle_x + m[4] * middle_y + m[5];
      if (at_x >= 0 && at_x < from.width && at_y >= 0 && at_y < from.height) {
        put_cubic(from, at_x, at_y, pixel);
      } else {
        std::copy_n(fill.begin(), 3, pixel);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace leat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leat {

HWY_EXPORT(warp_cubic_rgb);

void warp_cubic_rgb(const ColourView& from, const AffineMatrix& matrix,
                    const FillColour& fill, const ColourView& into) {
  HWY_DYNAMIC_DISPATCH(warp_cubic_rgb)(from, matrix, fill, into);
}

}  // namespace leat
#endif
