// Compiled once for each instruction set (foreach_target.h includes this file
// again and again); HWY_DYNAMIC_DISPATCH picks one at run time.
//
// Weighted sums are made two taps at a time: pixels as 16-bit lanes (p0, p1,
// p0', p1', …) times weights (w0, w1, w0, w1, …), neighbours added into 32
// bits. The two halves of the weights are summed apart and joined at the end,
// which gives exactly the 32-bit sum of whole weights.

#include "leat/pipeline/ops/kernels.h"

#include <cstring>

#include "leat/pipeline/ops/portable_kernels.h"
#include "leat/pipeline/ops/weights.h"

// Vectors wider than 256 bits bring nothing here, and scalable ones have no
// constant count of blocks.
#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "leat/pipeline/ops/kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace leat {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

using portable::blend_bytes;
using portable::blend_rows;
using portable::resize_rows;
using portable::split_rgb;
using portable::to_float;

#else

using D8 = hn::CappedTag<std::uint8_t, 32>;
using D16 = hn::Repartition<std::int16_t, D8>;
using D32 = hn::Repartition<std::int32_t, D8>;
using V8 = hn::VFromD<D8>;
using V16 = hn::VFromD<D16>;
using V32 = hn::VFromD<D32>;

constexpr std::size_t kBytes = hn::MaxLanes(D8());
constexpr std::size_t kBlocks = kBytes / 16;
constexpr std::size_t kChunks = 2 / kBlocks;  // Vectors for four taps of RGB.
static_assert(kBytes == 16 || kBytes == 32);

/// Sums of products with both halves of the weights.
struct Sums {
  V32 high0, high1, low0, low1;

  // Spelled out, since what the compiler makes up has no target attribute.
  HWY_INLINE Sums()
      : high0(hn::Zero(D32())), high1(high0), low0(high0), low1(high0) {}

  HWY_INLINE void add(V16 pixels, V16 high, V16 low) {
    high0 = hn::ReorderWidenMulAccumulate(D32(), pixels, high, high0, high1);
    low0 = hn::ReorderWidenMulAccumulate(D32(), pixels, low, low0, low1);
  }

  HWY_INLINE V32 joined() const {
    const V32 high = hn::RearrangeToOddPlusEven(high0, high1);
    const V32 low = hn::RearrangeToOddPlusEven(low0, low1);
    return hn::Add(hn::ShiftLeft<kLowBits>(high), low);
  }
};

template <class V>
HWY_INLINE V rounded(V sum) {
  const hn::DFromV<V> d;
  return hn::ShiftRight<kWeightBits>(
      hn::Add(sum, hn::Set(d, 1 << (kWeightBits - 1))));
}

constexpr std::uint8_t kZ = 0x80;  // Makes a zero.
// Four pixels of RGB to 16-bit lanes (r0 r1 g0 g1 b0 b1 - -)(r2 r3 …).
alignas(32) constexpr std::uint8_t kPairsOfRgb[32] = {
    0, kZ, 3, kZ, 1, kZ, 4,  kZ, 2, kZ, 5,  kZ, kZ, kZ, kZ, kZ,
    6, kZ, 9, kZ, 7, kZ, 10, kZ, 8, kZ, 11, kZ, kZ, kZ, kZ, kZ};
// A WeightQuad to its first pair of weights four times, then its second.
alignas(32) constexpr std::uint8_t kPairsOfHigh[32] = {
    0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
    4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7};
alignas(32) constexpr std::uint8_t kPairsOfLow[32] = {
    8,  9,  10, 11, 8,  9,  10, 11, 8,  9,  10, 11, 8,  9,  10, 11,
    12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15};

/// Writes one pixel to each of `kCount` rows (1 or 4) from sums over taps; each
/// block has a part of them. The fourth byte is the next pixel's, which comes
/// next.
template <std::uint32_t kCount, class V>
HWY_INLINE void store_pixels(const V (&sums)[kCount], std::uint8_t* into,
                             std::size_t stride) {
  const hn::DFromV<V> d;
  const D16 d16;
  const hn::Half<D8> half;
  alignas(16) std::uint8_t bytes[16];
  // The rows as they stand in `bytes`, four bytes each.
  std::size_t places[4] = {0, 4, 8, 12};
  if constexpr (kCount == 1) {
    V sum = sums[0];
    if constexpr (kBlocks == 2)
      sum = hn::Add(sum, hn::ConcatLowerUpper(d, sum, sum));
    const V pixel = rounded(sum);
    hn::Store(hn::DemoteTo(half, hn::ReorderDemote2To(d16, pixel, pixel)), half,
              bytes);
  } else if constexpr (kBlocks == 2) {
    const V a = hn::Add(hn::ConcatLowerLower(d, sums[1], sums[0]),
                        hn::ConcatUpperUpper(d, sums[1], sums[0]));
    const V b = hn::Add(hn::ConcatLowerLower(d, sums[3], sums[2]),
                        hn::ConcatUpperUpper(d, sums[3], sums[2]));
    const auto packed = hn::ReorderDemote2To(d16, rounded(a), rounded(b));
    hn::Store(hn::DemoteTo(half, packed), half, bytes);
    places[1] = 8;
    places[2] = 4;
  } else {
    for (std::size_t i = 0; i < 4; i += 2) {
      const auto packed =
          hn::ReorderDemote2To(d16, rounded(sums[i]), rounded(sums[i + 1]));
      hn::Store(hn::DemoteTo(half, packed), half, bytes + i * 4);
    }
  }
  for (std::uint32_t row = 0; row < kCount; ++row) {
    std::memcpy(into + row * stride, bytes + places[row], 4);
  }
}

/// `kCount` rows of RGB at once, so that weights are loaded once for all.
template <std::uint32_t kCount>
void resize_rgb_rows(const Rows& rows, const AxisWeights& weights,
                     std::uint8_t* HWY_RESTRICT into, std::size_t into_stride) {
  const D8 d8;
  const D16 d16;
  std::size_t out = 0;
  for (const AxisWeights::Target& target : weights.targets()) {
    Sums sums[kCount];
    const WeightQuad* quads = weights.quads(target);
    const std::uint8_t* from = rows.data + std::size_t{target.first} * 3;
    for (std::uint32_t tap = 0; tap < target.count; tap += kTapsPerQuad) {
      const V8 quad =
          hn::LoadDup128(d8, reinterpret_cast<const std::uint8_t*>(quads++));
      for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
        const std::size_t at = chunk * kBytes;
        const V16 high = hn::BitCast(
            d16, hn::TableLookupBytes(quad, hn::Load(d8, kPairsOfHigh + at)));
        const V16 low = hn::BitCast(
            d16, hn::TableLookupBytes(quad, hn::Load(d8, kPairsOfLow + at)));
        const V8 pairs = hn::Load(d8, kPairsOfRgb + at);
        for (std::uint32_t row = 0; row < kCount; ++row) {
          const V8 pixels = hn::LoadDup128(d8, from + row * rows.stride_bytes);
          sums[row].add(
              hn::BitCast(d16, hn::TableLookupBytesOr0(pixels, pairs)), high,
              low);
        }
      }
      from += 3 * kTapsPerQuad;
    }
    V32 joined[kCount];
    for (std::uint32_t row = 0; row < kCount; ++row) {
      joined[row] = sums[row].joined();
    }
    store_pixels(joined, into + out, into_stride);
    out += 3;
  }
}

void resize_rows(const Rows& rows, std::uint32_t channels,
                 const AxisWeights& weights, std::uint8_t* into,
                 std::size_t into_stride) {
  if (channels != 3) {
    portable::resize_rows(rows, channels, weights, into, into_stride);
    return;
  }
  Rows rest = rows;
  const auto advance = [&](std::uint32_t count) {
    rest.data += count * rest.stride_bytes;
    rest.count -= count;
    into += count * into_stride;
  };
  while (rest.count >= 4) {
    resize_rgb_rows<4>(rest, weights, into, into_stride);
    advance(4);
  }
  while (rest.count > 0) {
    resize_rgb_rows<1>(rest, weights, into, into_stride);
    advance(1);
  }
}

/// Converts four vectors of sums, whose blocks came from InterleaveLower and
/// Upper, to kBytes bytes.
template <class V>
HWY_INLINE void store_bytes(const V (&sums)[4], std::uint8_t* into) {
  const D16 d16;
  const hn::Half<D8> half;
  const V16 even = hn::ReorderDemote2To(d16, sums[0], sums[1]);
  const V16 odd = hn::ReorderDemote2To(d16, sums[2], sums[3]);
  const auto even8 = hn::DemoteTo(half, even);
  const auto odd8 = hn::DemoteTo(half, odd);
  if constexpr (kBlocks == 2) {
    const hn::Repartition<std::uint64_t, hn::Half<D8>> d64;
    const auto a = hn::BitCast(d64, even8);
    const auto b = hn::BitCast(d64, odd8);
    hn::StoreU(hn::BitCast(half, hn::InterleaveLower(d64, a, b)), half, into);
    hn::StoreU(hn::BitCast(half, hn::InterleaveUpper(d64, a, b)), half,
               into + 16);
  } else {
    hn::StoreU(even8, half, into);
    hn::StoreU(odd8, half, into + 8);
  }
}

/// Two weights side by side in every 32 bits.
HWY_INLINE V16 pair_of(const std::int16_t* weights) {
  const std::uint32_t low = static_cast<std::uint16_t>(weights[0]);
  const std::uint32_t high = static_cast<std::uint16_t>(weights[1]);
  return hn::BitCast(
      D16(), hn::Set(D32(), static_cast<std::int32_t>(low | high << 16)));
}

void blend_rows(const Rows& rows, const WeightQuad* quads,
                std::size_t row_bytes, std::uint8_t* HWY_RESTRICT into) {
  const D8 d8;
  const D16 d16;
  const V8 zero = hn::Zero(d8);
  for (std::size_t x = 0; x < row_bytes; x += kBytes) {
    Sums sums[4];
    for (std::uint32_t tap = 0; tap < rows.count; tap += 2) {
      const WeightQuad& quad = quads[tap / kTapsPerQuad];
      const V16 high = pair_of(quad.high + tap % kTapsPerQuad);
      const V16 low = pair_of(quad.low + tap % kTapsPerQuad);
      const std::uint8_t* row = rows.data + tap * rows.stride_bytes + x;
      const V8 a = hn::LoadU(d8, row);
      // An odd count's last weight is 0: any row will do.
      const V8 b =
          tap + 1 < rows.count ? hn::LoadU(d8, row + rows.stride_bytes) : zero;
      const V8 lower = hn::InterleaveLower(d8, a, b);
      const V8 upper = hn::InterleaveUpper(d8, a, b);
      sums[0].add(hn::BitCast(d16, hn::InterleaveLower(d8, lower, zero)), high,
                  low);
      sums[1].add(hn::BitCast(d16, hn::InterleaveUpper(d8, lower, zero)), high,
                  low);
      sums[2].add(hn::BitCast(d16, hn::InterleaveLower(d8, upper, zero)), high,
                  low);
      sums[3].add(hn::BitCast(d16, hn::InterleaveUpper(d8, upper, zero)), high,
                  low);
    }
    const V32 whole[4] = {rounded(sums[0].joined()), rounded(sums[1].joined()),
                          rounded(sums[2].joined()), rounded(sums[3].joined())};
    store_bytes(whole, into + x);
  }
}

void split_rgb(const std::uint8_t* HWY_RESTRICT rgb, std::size_t width,
               int step, std::uint8_t* HWY_RESTRICT planes,
               std::size_t plane_stride) {
  const hn::FixedTag<std::uint8_t, kPlaneBlock> d;
  alignas(16) static constexpr std::uint8_t kBackwards[kPlaneBlock] = {
      15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const auto backwards = hn::Load(d, kBackwards);
  const std::size_t blocks = (width + kPlaneBlock - 1) / kPlaneBlock;
  for (std::size_t i = 0; i < blocks; ++i) {
    hn::VFromD<decltype(d)> r, g, b;
    hn::LoadInterleaved3(d, rgb + i * kPlaneBlock * 3, r, g, b);
    std::size_t at = i * kPlaneBlock;
    if (step < 0) {
      r = hn::TableLookupBytes(r, backwards);
      g = hn::TableLookupBytes(g, backwards);
      b = hn::TableLookupBytes(b, backwards);
      at = (blocks - 1 - i) * kPlaneBlock;
    }
    hn::StoreU(r, d, planes + at);
    hn::StoreU(g, d, planes + plane_stride + at);
    hn::StoreU(b, d, planes + 2 * plane_stride + at);
  }
}

void to_float(const std::uint8_t* HWY_RESTRICT from, std::size_t count,
              float scale, float bias, float* HWY_RESTRICT into) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> d_int;
  const hn::Rebind<std::uint8_t, decltype(d)> d_byte;
  const std::size_t lanes = hn::Lanes(d);
  const auto scales = hn::Set(d, scale);
  const auto biases = hn::Set(d, bias);
  const auto convert = [&](std::size_t i) HWY_ATTR {
    const auto whole = hn::PromoteTo(d_int, hn::LoadU(d_byte, from + i));
    const auto value = hn::ConvertTo(d, whole);
    hn::StoreU(hn::Add(hn::Mul(value, scales), biases), d, into + i);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) convert(i);
  if (i == count) return;
  if (count >= lanes) return convert(count - lanes);  // Some of them again.
  for (; i < count; ++i) into[i] = static_cast<float>(from[i]) * scale + bias;
}

void blend_bytes(const std::uint8_t* from, const std::uint8_t* to,
                 std::size_t count, float amount, std::uint8_t* into) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> d_int;
  const hn::Rebind<std::int16_t, decltype(d)> d_short;
  const hn::Rebind<std::uint8_t, decltype(d)> d_byte;
  const std::size_t lanes = hn::Lanes(d);
  const auto amounts = hn::Set(d, amount);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto a = hn::PromoteTo(d_int, hn::LoadU(d_byte, from + i));
    const auto b = hn::PromoteTo(d_int, hn::LoadU(d_byte, to + i));
    const auto difference = hn::ConvertTo(d, hn::Sub(b, a));
    const auto value =
        hn::Add(hn::ConvertTo(d, a), hn::Mul(amounts, difference));
    const auto within =
        hn::Min(hn::Max(value, hn::Zero(d)), hn::Set(d, 255.0F));
    const auto shorts = hn::DemoteTo(d_short, hn::ConvertTo(d_int, within));
    hn::StoreU(hn::DemoteTo(d_byte, shorts), d_byte, into + i);
  }
  portable::blend_bytes(from + i, to + i, count - i, amount, into + i);
}

#endif  // HWY_TARGET == HWY_SCALAR

const char* simd_target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace leat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leat {

HWY_EXPORT(resize_rows);
HWY_EXPORT(blend_bytes);
HWY_EXPORT(blend_rows);
HWY_EXPORT(split_rgb);
HWY_EXPORT(to_float);
HWY_EXPORT(simd_target);

void resize_rows(const Rows& rows, std::uint32_t channels,
                 const AxisWeights& weights, std::uint8_t* into,
                 std::size_t into_stride) {
  HWY_DYNAMIC_DISPATCH(resize_rows)(rows, channels, weights, into, into_stride);
}

void blend_bytes(const std::uint8_t* from, const std::uint8_t* to,
                 std::size_t count, float amount, std::uint8_t* into) {
  HWY_DYNAMIC_DISPATCH(blend_bytes)(from, to, count, amount, into);
}

void blend_rows(const Rows& rows, const WeightQuad* quads,
                std::size_t row_bytes, std::uint8_t* into) {
  HWY_DYNAMIC_DISPATCH(blend_rows)(rows, quads, row_bytes, into);
}

void split_rgb(const std::uint8_t* rgb, std::size_t width, int step,
               std::uint8_t* planes, std::size_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(split_rgb)(rgb, width, step, planes, plane_stride);
}

void to_float(const std::uint8_t* from, std::size_t count, float scale,
              float bias, float* into) {
  HWY_DYNAMIC_DISPATCH(to_float)(from, count, scale, bias, into);
}

const char* simd_target() { return HWY_DYNAMIC_DISPATCH(simd_target)(); }

}  // namespace leat
#endif  // HWY_ONCE
