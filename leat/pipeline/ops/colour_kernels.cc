// Compiled once for each instruction set, as kernels.cc.
//
// Pixels are taken apart into planes, sixteen at a time; a shorter rest goes
// through memory of that size. These round a number to float, or keep it in
// double, exactly as Pillow does: see portable_colour_kernels.h.

#include "leat/pipeline/ops/colour_kernels.h"

#include <algorithm>
#include <cstring>

#include "leat/pipeline/ops/portable_colour_kernels.h"

#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "leat/pipeline/ops/colour_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace leat {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

using portable::blend_from;
using portable::first_of_rgb;
using portable::grey_of_rgb;
using portable::invert_from;
using portable::make_rgb_grey;
using portable::mirror_row;
using portable::saturate_rgb;
using portable::turn_hue;

#else

constexpr std::size_t kPixels = 16;  // The pixels of a block.
using D8 = hn::FixedTag<std::uint8_t, kPixels>;
using D16 = hn::Repartition<std::int16_t, D8>;
using D32 = hn::Repartition<std::int32_t, D8>;
using V8 = hn::VFromD<D8>;
using V32 = hn::VFromD<D32>;

using DF = hn::CappedTag<float, 8>;
using DI = hn::Rebind<std::int32_t, DF>;
using DB = hn::Rebind<std::uint8_t, DF>;
using DD = hn::Repartition<double, DF>;
using VF = hn::VFromD<DF>;
using VI = hn::VFromD<DI>;
using VD = hn::VFromD<DD>;
constexpr std::size_t kLanes = hn::MaxLanes(DF());

/// The bytes of one plane of a block.
struct alignas(16) Plane {
  std::uint8_t bytes[kPixels];
};

HWY_INLINE VI load(const Plane& plane, std::size_t at) {
  return hn::PromoteTo(DI(), hn::LoadU(DB(), plane.bytes + at));
}
HWY_INLINE void store(VI values, Plane& plane, std::size_t at) {
  hn::StoreU(hn::DemoteTo(DB(), values), DB(), plane.bytes + at);
}

/// Calls `change` with every block of a row, which lies there or in memory.
template <class Change>
HWY_INLINE void for_each_block(std::uint8_t* rgb, std::size_t width,
                               const Change& change) {
  for (; width >= kPixels; width -= kPixels, rgb += kPixels * 3) change(rgb);
  if (width == 0) return;
  std::uint8_t rest[kPixels * 3] = {};
  std::memcpy(rest, rgb, width * 3);
  change(rest);
  std::memcpy(rgb, rest, width * 3);
}

/// Two 16-bit weights in every 32 bits.
HWY_INLINE hn::VFromD<D16> weights_of(std::int32_t first, std::int32_t second) {
  return hn::BitCast(D16(), hn::Set(D32(), first | second << 16));
}

/// Four greys from 16-bit lanes (r g r g …) and (g b g b …). Green's weight is
/// too large for one signed lane: each pair has half of it.
HWY_INLINE V32 greys_of(V8 rg, V8 gb) {
  V32 first = hn::Zero(D32());
  V32 second = first;
  first = hn::ReorderWidenMulAccumulate(
      D32(), hn::BitCast(D16(), rg), weights_of(19595, 19235), first, second);
  first = hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(D16(), gb),
                                        weights_of(19235, 7471), first, second);
  const V32 sum = hn::RearrangeToOddPlusEven(first, second);
  return hn::ShiftRight<16>(hn::Add(sum, hn::Set(D32(), 0x8000)));
}

// Four pixels of RGB to 16-bit lanes (r g r g …) and (g b g b …): where they
// begin the vector, and where they end it.
constexpr std::uint8_t kZ = 0x80;  // Makes a zero.
alignas(16) constexpr std::uint8_t kRedGreen[2][16] = {
    {0, kZ, 1, kZ, 3, kZ, 4, kZ, 6, kZ, 7, kZ, 9, kZ, 10, kZ},
    {4, kZ, 5, kZ, 7, kZ, 8, kZ, 10, kZ, 11, kZ, 13, kZ, 14, kZ}};
alignas(16) constexpr std::uint8_t kGreenBlue[2][16] = {
    {1, kZ, 2, kZ, 4, kZ, 5, kZ, 7, kZ, 8, kZ, 10, kZ, 11, kZ},
    {5, kZ, 6, kZ, 8, kZ, 9, kZ, 11, kZ, 12, kZ, 14, kZ, 15, kZ}};

template <std::size_t kPlace>
HWY_INLINE V32 greys_at(const std::uint8_t* rgb) {
  const D8 d;
  const V8 pixels = hn::LoadU(d, rgb);
  return greys_of(
      hn::TableLookupBytesOr0(pixels, hn::Load(d, kRedGreen[kPlace])),
      hn::TableLookupBytesOr0(pixels, hn::Load(d, kGreenBlue[kPlace])));
}

/// The greys of a block; reads no more than that.
HWY_INLINE V8 grey_at(const std::uint8_t* rgb) {
  const auto lower =
      hn::ReorderDemote2To(D16(), greys_at<0>(rgb), greys_at<0>(rgb + 12));
  const auto upper =
      hn::ReorderDemote2To(D16(), greys_at<0>(rgb + 24), greys_at<1>(rgb + 32));
  const hn::Half<D8> half;
  return hn::Combine(D8(), hn::DemoteTo(half, upper),
                     hn::DemoteTo(half, lower));
}

void grey_of_rgb(const std::uint8_t* HWY_RESTRICT rgb, std::size_t width,
                 std::uint8_t* HWY_RESTRICT grey) {
  std::size_t x = 0;
  for (; x + kPixels <= width; x += kPixels) {
    hn::StoreU(grey_at(rgb + x * 3), D8(), grey + x);
  }
  portable::grey_of_rgb(rgb + x * 3, width - x, grey + x);
}

void first_of_rgb(const std::uint8_t* HWY_RESTRICT rgb, std::size_t width,
                  std::uint8_t* HWY_RESTRICT into) {
  const D8 d;
  std::size_t x = 0;
  for (; x + kPixels <= width; x += kPixels) {
    V8 r, g, b;
    hn::LoadInterleaved3(d, rgb + x * 3, r, g, b);
    hn::StoreU(r, d, into + x);
  }
  portable::first_of_rgb(rgb + x * 3, width - x, into + x);
}

void invert_from(int threshold, std::uint8_t* bytes, std::size_t count) {
  if (threshold > 255) return;
  const hn::CappedTag<std::uint8_t, 32> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(d, static_cast<std::uint8_t>(threshold));
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, bytes + i);
    const auto reaches =
        hn::VecFromMask(d, hn::Eq(hn::Max(value, least), value));
    hn::StoreU(hn::Xor(value, reaches), d, bytes + i);
  }
  portable::invert_from(threshold, bytes + i, count - i);
}

// Each of a block's greys three times: a third of them in each vector.
alignas(16) constexpr std::uint8_t kThrice[3][16] = {
    {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5},
    {5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10},
    {10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15}};

void make_rgb_grey(const std::uint8_t* rgb, std::size_t width,
                   std::uint8_t* into) {
  const D8 d;
  std::size_t x = 0;
  for (; x + kPixels <= width; x += kPixels) {
    const V8 grey = grey_at(rgb + x * 3);
    for (std::size_t i = 0; i < 3; ++i) {
      hn::StoreU(hn::TableLookupBytes(grey, hn::Load(d, kThrice[i])), d,
                 into + x * 3 + i * kPixels);
    }
  }
  portable::make_rgb_grey(rgb + x * 3, width - x, into + x * 3);
}

/// More moves every byte that differs at all to an end of the scale.
HWY_INLINE float within_reach(float amount) {
  return std::clamp(amount, -1e6F, 1e6F);
}

/// from + amount * (to - from), rounded towards zero; the code that stores the
/// result cuts off values beyond a byte.
HWY_INLINE VI blended(VI from, VI to, VF amount) {
  const VF difference = hn::ConvertTo(DF(), hn::Sub(to, from));
  return hn::ConvertTo(
      DI(), hn::Add(hn::ConvertTo(DF(), from), hn::Mul(amount, difference)));
}

void saturate_rgb(std::uint8_t* rgb, std::size_t width, float amount) {
  const VF amounts = hn::Set(DF(), within_reach(amount));
  for_each_block(rgb, width, [&](std::uint8_t* block) HWY_ATTR {
    const D8 d;
    V8 r, g, b;
    hn::LoadInterleaved3(d, block, r, g, b);
    Plane planes[3];
    Plane grey;
    hn::Store(r, d, planes[0].bytes);
    hn::Store(g, d, planes[1].bytes);
    hn::Store(b, d, planes[2].bytes);
    hn::Store(grey_at(block), d, grey.bytes);
    for (std::size_t at = 0; at < kPixels; at += kLanes) {
      const VI from = load(grey, at);
      for (Plane& plane : planes) {
        store(blended(from, load(plane, at), amounts), plane, at);
      }
    }
    hn::StoreInterleaved3(hn::Load(d, planes[0].bytes),
                          hn::Load(d, planes[1].bytes),
                          hn::Load(d, planes[2].bytes), d, block);
  });
}

void blend_from(int from, std::uint8_t* bytes, std::size_t count,
                float amount) {
  const VF amounts = hn::Set(DF(), within_reach(amount));
  const VI begin = hn::Set(DI(), from);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VI to = hn::PromoteTo(DI(), hn::LoadU(DB(), bytes + i));
    hn::StoreU(hn::DemoteTo(DB(), blended(begin, to, amounts)), DB(),
               bytes + i);
  }
  portable::blend_from(from, bytes + i, count - i, amount);
}

HWY_INLINE VD lower(VF v) {
  return hn::PromoteTo(DD(), hn::LowerHalf(hn::Half<DF>(), v));
}
HWY_INLINE VD upper(VF v) {
  return hn::PromoteTo(DD(), hn::UpperHalf(hn::Half<DF>(), v));
}
HWY_INLINE VI whole(VD lower_half, VD upper_half) {
  const hn::Half<DI> half;
  return hn::Combine(DI(), hn::DemoteTo(half, upper_half),
                     hn::DemoteTo(half, lower_half));
}

/// For values that are at least 0.
HWY_INLINE VI times_255(VF share) {
  const VD most = hn::Set(DD(), 255.0);
  return whole(hn::Mul(lower(share), most), hn::Mul(upper(share), most));
}

/// The share of the circle of a hue in sextants, -1 to 5.
HWY_INLINE VF in_circle(VF hue) {
  const VD sextants = hn::Set(DD(), 6.0);
  const VD one = hn::Set(DD(), 1.0);
  VD a = hn::Add(hn::Div(lower(hue), sextants), one);
  VD b = hn::Add(hn::Div(upper(hue), sextants), one);
  a = hn::Sub(a, hn::Floor(a));
  b = hn::Sub(b, hn::Floor(b));
  const hn::Half<DF> half;
  return hn::Combine(DF(), hn::DemoteTo(half, b), hn::DemoteTo(half, a));
}

/// value * (1 - share), rounded.
HWY_INLINE VD level(VD value, VD share) {
  const VD rest = hn::Sub(hn::Set(DD(), 1.0), share);
  return hn::Add(hn::Mul(value, rest), hn::Set(DD(), 0.5));
}

/// The channel that is neither the largest nor the smallest. It rises with
/// `part` in even sextants and falls in odd ones; when it falls, the product is
/// a float.
HWY_INLINE VD between_level(VD value, VD saturation, VD part, VD product,
                            VD is_odd) {
  const VD rest = hn::Sub(hn::Set(DD(), 1.0), part);
  const VD rising = hn::Mul(saturation, rest);
  return level(value,
               hn::IfThenElse(hn::Gt(is_odd, hn::Zero(DD())), product, rising));
}

/// One block on its way through HSV. The hue is `turn` - 1 sextants and the
/// share that `middle` is below `most`: added, or subtracted where `falls`.
struct HueBlock {
  Plane most, range, below, turn, falls;
  Plane sextant, least, middle;  ///< Planes of the result.
};

HWY_INLINE void turn_lanes(HueBlock& block, std::size_t at,
                           std::uint8_t steps) {
  const DF df;
  const DI di;
  const VF one = hn::Set(df, 1.0F);
  const VI value = load(block.most, at);
  const VF most = hn::ConvertTo(df, value);
  const VF range = hn::ConvertTo(df, load(block.range, at));
  const VI sign = hn::Sub(hn::Zero(di), load(block.falls, at));
  const VI below = hn::Sub(hn::Xor(load(block.below, at), sign), sign);
  const VF turn =
      hn::ConvertTo(df, hn::Sub(load(block.turn, at), hn::Set(di, 1)));
  const VF hue =
      hn::Add(turn, hn::Div(hn::ConvertTo(df, below), hn::Max(range, one)));
  const VI h = hn::And(hn::Add(times_255(in_circle(hue)), hn::Set(di, steps)),
                       hn::Set(di, 255));
  const VI s = times_255(hn::Div(range, hn::Max(most, one)));

  // By 255, exactly, for numbers of 11 bits.
  const VI turned = hn::Add(hn::ShiftLeft<2>(h), hn::ShiftLeft<1>(h));
  const VI sextant = hn::ShiftRight<23>(hn::Mul(turned, hn::Set(di, 0x8081)));
  const VI rest = hn::Add(hn::Sub(turned, hn::ShiftLeft<8>(sextant)), sextant);
  const VF scale = hn::Set(df, 255.0F);
  const VF part = hn::Div(hn::ConvertTo(df, rest), scale);
  const VF saturation = hn::Div(hn::ConvertTo(df, s), scale);
  const VF product = hn::Mul(saturation, part);
  const VF is_odd = hn::ConvertTo(df, hn::And(sextant, hn::Set(di, 1)));
  const VI middle =
      whole(between_level(lower(most), lower(saturation), lower(part),
                          lower(product), lower(is_odd)),
            between_level(upper(most), upper(saturation), upper(part),
                          upper(product), upper(is_odd)));
  // value * (255 - s) / 255, rounded; never between two: 255 is odd.
  const VI scaled =
      hn::Add(hn::Mul(value, hn::Sub(hn::Set(di, 255), s)), hn::Set(di, 128));
  store(hn::ShiftRight<8>(hn::Add(scaled, hn::ShiftRight<8>(scaled))),
        block.least, at);
  store(middle, block.middle, at);
  store(sextant, block.sextant, at);
}

// Which of the three a channel is in each sextant; the last is the first again.
constexpr std::uint8_t kMost = 0;
constexpr std::uint8_t kMiddle = 1;
constexpr std::uint8_t kLeast = 2;
alignas(16) constexpr std::uint8_t kChannels[3][16] = {
    {kMost, kMiddle, kLeast, kLeast, kMiddle, kMost, kMost},
    {kMiddle, kMost, kMost, kMiddle, kLeast, kLeast, kMiddle},
    {kLeast, kLeast, kMiddle, kMost, kMost, kMiddle, kLeast}};

HWY_INLINE V8 channel_of(const HueBlock& block, std::size_t channel) {
  const D8 d;
  const V8 which = hn::TableLookupBytes(hn::Load(d, kChannels[channel]),
                                        hn::Load(d, block.sextant.bytes));
  const V8 others = hn::IfThenElse(hn::Eq(which, hn::Set(d, kMiddle)),
                                   hn::Load(d, block.middle.bytes),
                                   hn::Load(d, block.least.bytes));
  return hn::IfThenElse(hn::Eq(which, hn::Set(d, kMost)),
                        hn::Load(d, block.most.bytes), others);
}

HWY_INLINE void turn_block(std::uint8_t* rgb, std::uint8_t steps) {
  const D8 d;
  V8 r, g, b;
  hn::LoadInterleaved3(d, rgb, r, g, b);
  const V8 most = hn::Max(hn::Max(r, g), b);
  const V8 least = hn::Min(hn::Min(r, g), b);
  const V8 middle = hn::Xor(hn::Xor(hn::Xor(r, g), b), hn::Xor(most, least));
  const auto r_is_least = hn::Eq(r, least);
  const auto b_is_least = hn::Eq(b, least);
  const auto r_is_most = hn::Eq(r, most);
  const auto g_is_most = hn::Eq(g, most);
  const V8 one = hn::Set(d, 1);
  const V8 none = hn::Zero(d);
  // Sextants, and 1: red's are around 0, green's around 2, blue's around 4.
  const V8 of_red = hn::IfThenElse(b_is_least, hn::Set(d, 2), none);
  const V8 of_green = hn::IfThenElse(b_is_least, hn::Set(d, 2), hn::Set(d, 4));
  const V8 of_blue = hn::IfThenElse(r_is_least, hn::Set(d, 4), hn::Set(d, 6));
  HueBlock block;
  hn::Store(most, d, block.most.bytes);
  hn::Store(hn::Sub(most, least), d, block.range.bytes);
  hn::Store(hn::Sub(most, middle), d, block.below.bytes);
  hn::Store(hn::IfThenElse(r_is_most, of_red,
                           hn::IfThenElse(g_is_most, of_green, of_blue)),
            d, block.turn.bytes);
  const V8 red_falls = hn::IfThenElse(b_is_least, one, none);
  const V8 green_falls = hn::IfThenElse(b_is_least, none, one);
  const V8 blue_falls = hn::IfThenElse(r_is_least, none, one);
  hn::Store(hn::IfThenElse(r_is_most, red_falls,
                           hn::IfThenElse(g_is_most, green_falls, blue_falls)),
            d, block.falls.bytes);
  for (std::size_t at = 0; at < kPixels; at += kLanes) {
    turn_lanes(block, at, steps);
  }
  hn::StoreInterleaved3(channel_of(block, 0), channel_of(block, 1),
                        channel_of(block, 2), d, rgb);
}

void turn_hue(std::uint8_t* rgb, std::size_t width, std::uint8_t steps) {
  for_each_block(rgb, width, [steps](std::uint8_t* block) HWY_ATTR {
    turn_block(block, steps);
  });
}

// Five pixels of RGB from right to left; the byte before them goes last.
alignas(16) constexpr std::uint8_t kFiveBackwards[16] = {
    13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0};
alignas(16) constexpr std::uint8_t kBackwards[16] = {
    15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

void mirror_row(const std::uint8_t* HWY_RESTRICT from, std::size_t width,
                std::uint32_t channels, std::uint8_t* HWY_RESTRICT into) {
  if (channels != 1 && channels != 3) {
    return portable::mirror_row(from, width, channels, into);
  }
  const D8 d;
  const bool is_rgb = channels == 3;
  const V8 order = hn::Load(d, is_rgb ? kFiveBackwards : kBackwards);
  const std::size_t bytes = is_rgb ? 15 : 16;
  std::size_t rest = width * channels;
  for (; rest >= 16; rest -= bytes, into += bytes) {
    const V8 pixels = hn::LoadU(d, from + rest - 16);
    hn::StoreU(hn::TableLookupBytes(pixels, order), d, into);
  }
  portable::mirror_row(from, rest / channels, channels, into);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace leat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leat {

HWY_EXPORT(blend_from);
HWY_EXPORT(first_of_rgb);
HWY_EXPORT(grey_of_rgb);
HWY_EXPORT(invert_from);
HWY_EXPORT(make_rgb_grey);
HWY_EXPORT(mirror_row);
HWY_EXPORT(saturate_rgb);
HWY_EXPORT(turn_hue);

void grey_of_rgb(const std::uint8_t* rgb, std::size_t width,
                 std::uint8_t* grey) {
  HWY_DYNAMIC_DISPATCH(grey_of_rgb)(rgb, width, grey);
}

void make_rgb_grey(const std::uint8_t* rgb, std::size_t width,
                   std::uint8_t* into) {
  HWY_DYNAMIC_DISPATCH(make_rgb_grey)(rgb, width, into);
}

void saturate_rgb(std::uint8_t* rgb, std::size_t width, float amount) {
  HWY_DYNAMIC_DISPATCH(saturate_rgb)(rgb, width, amount);
}

void turn_hue(std::uint8_t* rgb, std::size_t width, std::uint8_t steps) {
  HWY_DYNAMIC_DISPATCH(turn_hue)(rgb, width, steps);
}

void blend_from(int from, std::uint8_t* bytes, std::size_t count,
                float amount) {
  HWY_DYNAMIC_DISPATCH(blend_from)(from, bytes, count, amount);
}

void invert_from(int threshold, std::uint8_t* bytes, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(invert_from)(threshold, bytes, count);
}

void first_of_rgb(const std::uint8_t* rgb, std::size_t width,
                  std::uint8_t* into) {
  HWY_DYNAMIC_DISPATCH(first_of_rgb)(rgb, width, into);
}

void mirror_row(const std::uint8_t* from, std::size_t width,
                std::uint32_t channels, std::uint8_t* into) {
  HWY_DYNAMIC_DISPATCH(mirror_row)(from, width, channels, into);
}

}  // namespace leat
#endif  // HWY_ONCE
