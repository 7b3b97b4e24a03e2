// Compiled once for each instruction set, as kernels.cc.
//
// The 16-bit floats are widened and narrowed in integers, as small_floats.h
// does it: some instruction sets have no instruction for it that rounds to
// the nearest.

#include "leat/pipeline/ops/mix_kernels.h"

#include <bit>

#include "leat/pipeline/ops/portable_mix_kernels.h"

#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "leat/pipeline/ops/mix_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace leat {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kVectorBytes = 32;  // At most.
using DF = hn::CappedTag<float, kVectorBytes / sizeof(float)>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using D16 = hn::Rebind<std::uint16_t, DF>;
using VF = hn::VFromD<DF>;
using VI = hn::VFromD<DI>;
using VU = hn::VFromD<DU>;
using V16 = hn::VFromD<D16>;

constexpr std::int32_t bits_of(float value) {
  return std::bit_cast<std::int32_t>(value);
}
constexpr std::int32_t kSign = 0x8000;
constexpr std::int32_t kMagnitude = 0x7fff'ffff;
constexpr std::int32_t kInfinite = 0x7f80'0000;
constexpr std::int32_t kRebias = (127 - 15) << 23;

struct Float16 {
  static HWY_INLINE VF widened(V16 halves) {
    const DI d;
    const DF df;
    const VI bits = hn::PromoteTo(d, halves);
    const VI magnitude = hn::And(bits, hn::Set(d, 0x7fff));
    const VI rebias = hn::Set(d, kRebias);
    const VI normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
    const VI beside = hn::Add(magnitude, hn::Set(d, bits_of(0.5f)));
    const VI subnormal =
        hn::BitCast(d, hn::Sub(hn::BitCast(df, beside), hn::Set(df, 0.5f)));
    VI made = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400)), subnormal,
                             normal);
    made = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7bff)),
                          hn::Add(normal, rebias), made);
    const VI sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, kSign)));
    return hn::BitCast(df, hn::Or(sign, made));
  }

  static HWY_INLINE V16 narrowed(VF values) {
    const DI d;
    const DF df;
    const VI bits = hn::BitCast(d, values);
    const VI magnitude = hn::And(bits, hn::Set(d, kMagnitude));
    const VF beside = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f));
    const VI subnormal =
        hn::Sub(hn::BitCast(d, beside), hn::Set(d, bits_of(0.5f)));
    const VI is_odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
    const VI normal = hn::ShiftRight<13>(
        hn::Add(hn::Add(magnitude, hn::Set(d, 0xfff - kRebias)), is_odd));
    VI made = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, bits_of(0x1p-14f))),
                             subnormal, normal);
    made = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, bits_of(65'520.0f))),
                          made, hn::Set(d, 0x7c00));
    made = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinite)),
                          hn::Set(d, 0x7e00), made);
    const VI sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, kSign));
    return hn::DemoteTo(D16(), hn::Or(sign, made));
  }
};

struct Bfloat16 {
  static HWY_INLINE VF widened(V16 upper) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DI(), upper)));
  }

  static HWY_INLINE V16 narrowed(VF values) {
    const DU d;
    const DI di;
    const VU bits = hn::BitCast(d, values);
    const VU upper = hn::ShiftRight<16>(bits);
    const VU is_odd = hn::And(upper, hn::Set(d, 1));
    const VI rounded = hn::BitCast(
        di,
        hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), is_odd)));
    const VI magnitude =
        hn::And(hn::BitCast(di, bits), hn::Set(di, kMagnitude));
    const VI none = hn::BitCast(di, hn::Or(upper, hn::Set(d, 0x40)));
    return hn::DemoteTo(
        D16(), hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, kInfinite)), none,
                              rounded));
  }
};

/// Mixes whole vectors. Returns how many numbers they held.
template <class T>
HWY_INLINE std::size_t mix_vectors(const T* other, std::size_t count,
                                   MixShares<T> shares, T* own) {
  const hn::CappedTag<T, kVectorBytes / sizeof(T)> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto mine = hn::Set(d, shares.own);
  const auto others = hn::Set(d, shares.other);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto kept = hn::Mul(hn::LoadU(d, own + i), mine);
    const auto added = hn::Mul(hn::LoadU(d, other + i), others);
    hn::StoreU(hn::Add(kept, added), d, own + i);
  }
  return i;
}

template <class Format>
HWY_INLINE std::size_t mix_small(const std::uint16_t* other, std::size_t count,
                                 MixShares<float> shares, std::uint16_t* own) {
  const D16 d;
  const std::size_t lanes = hn::Lanes(d);
  const VF mine = hn::Set(DF(), shares.own);
  const VF others = hn::Set(DF(), shares.other);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const VF kept = hn::Mul(Format::widened(hn::LoadU(d, own + i)), mine);
    const VF added = hn::Mul(Format::widened(hn::LoadU(d, other + i)), others);
    hn::StoreU(Format::narrowed(hn::Add(kept, added)), d, own + i);
  }
  return i;
}

void mix_float32(const float* other, std::size_t count, MixShares<float> shares,
                 float* own) {
  const std::size_t done = mix_vectors(other, count, shares, own);
  portable::mix_floats(other + done, count - done, shares, own + done);
}

void mix_float64(const double* other, std::size_t count,
                 MixShares<double> shares, double* own) {
  const std::size_t done = mix_vectors(other, count, shares, own);
  portable::mix_floats(other + done, count - done, shares, own + done);
}

void mix_float16(const std::uint16_t* other, std::size_t count,
                 MixShares<float> shares, std::uint16_t* own) {
  const std::size_t done = mix_small<Float16>(other, count, shares, own);
  portable::mix_float16(other + done, count - done, shares, own + done);
}

void mix_bfloat16(const std::uint16_t* other, std::size_t count,
                  MixShares<float> shares, std::uint16_t* own) {
  const std::size_t done = mix_small<Bfloat16>(other, count, shares, own);
  portable::mix_bfloat16(other + done, count - done, shares, own + done);
}

}  // namespace HWY_NAMESPACE
}  // namespace leat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leat {

HWY_EXPORT(mix_bfloat16);
HWY_EXPORT(mix_float16);
HWY_EXPORT(mix_float32);
HWY_EXPORT(mix_float64);

void mix_float32(const float* other, std::size_t count, MixShares<float> shares,
                 float* own) {
  HWY_DYNAMIC_DISPATCH(mix_float32)(other, count, shares, own);
}

void mix_float64(const double* other, std::size_t count,
                 MixShares<double> shares, double* own) {
  HWY_DYNAMIC_DISPATCH(mix_float64)(other, count, shares, own);
}

void mix_float16(const std::uint16_t* other, std::size_t count,
                 MixShares<float> shares, std::uint16_t* own) {
  HWY_DYNAMIC_DISPATCH(mix_float16)(other, count, shares, own);
}

void mix_bfloat16(const std::uint16_t* other, std::size_t count,
                  MixShares<float> shares, std::uint16_t* own) {
  HWY_DYNAMIC_DISPATCH(mix_bfloat16)(other, count, shares, own);
}

}  // namespace leat
#endif  // HWY_ONCE
