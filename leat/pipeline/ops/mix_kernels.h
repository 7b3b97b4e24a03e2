// The loops of MixUp over numbers, in SIMD chosen at run time. A product and a
// sum are each rounded, as in NumPy and torch: every machine gets the same
// bytes. Floats of 16 bits are mixed as float32, and rounded once more.
#pragma once
#include <cstddef>
#include <cstdint>

namespace leat {

/// How much of a mixed number is its own, and how much is the other's.
template <class T>
struct MixShares {
  T own = 1;
  T other = 0;
};

/// own[i] = own[i] * shares.own + other[i] * shares.other
///
/// REQUIRES: `other` is `own`, or overlaps it nowhere.
void mix_float32(const float* other, std::size_t count, MixShares<float> shares,
                 float* own);
void mix_float64(const double* other, std::size_t count,
                 MixShares<double> shares, double* own);
/// The bits of IEEE binary16.
void mix_float16(const std::uint16_t* other, std::size_t count,
                 MixShares<float> shares, std::uint16_t* own);
/// The upper 16 bits of float32.
void mix_bfloat16(const std::uint16_t* other, std::size_t count,
                  MixShares<float> shares, std::uint16_t* own);

}  // namespace leat
