// Plain versions of the loops in mix_kernels.h: for the numbers behind the last
// whole vector, and for tests to compare the fast ones with.
#pragma once
#include <cstddef>
#include <cstdint>

#include "leat/pipeline/ops/mix_kernels.h"
#include "leat/pipeline/ops/small_floats.h"

namespace leat::portable {

template <class T>
T mixed(T own, T other, MixShares<T> shares) {
  return own * shares.own + other * shares.other;
}

template <class T>
void mix_floats(const T* other, std::size_t count, MixShares<T> shares,
                T* own) {
  for (std::size_t i = 0; i < count; ++i) {
    own[i] = mixed(own[i], other[i], shares);
  }
}

inline void mix_float16(const std::uint16_t* other, std::size_t count,
                        MixShares<float> shares, std::uint16_t* own) {
  for (std::size_t i = 0; i < count; ++i) {
    own[i] =
        to_float16(mixed(of_float16(own[i]), of_float16(other[i]), shares));
  }
}

inline void mix_bfloat16(const std::uint16_t* other, std::size_t count,
                         MixShares<float> shares, std::uint16_t* own) {
  for (std::size_t i = 0; i < count; ++i) {
    own[i] =
        to_bfloat16(mixed(of_bfloat16(own[i]), of_bfloat16(other[i]), shares));
  }
}

}  // namespace leat::portable
