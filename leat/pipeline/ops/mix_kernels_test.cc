// The fast loops against the plain ones, number by number, for each instruction
// set that this machine has.

#include "leat/pipeline/ops/mix_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <vector>

// As mix_kernels.cc: no other is compiled.
#define HWY_DISABLED_TARGETS \
  (HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include "hwy/highway.h"
#include "leat/pipeline/ops/portable_mix_kernels.h"
#include "leat/pipeline/ops/small_floats.h"

namespace leat {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 3, 4, 7, 8, 9, 15, 16, 33, 0x10000};
/// Behind the numbers; nobody may change them.
constexpr std::size_t kGuards = 8;

/// All values of 16 bits, in an order that pairs them with others.
std::vector<std::uint16_t> all_bits(std::uint32_t step, std::uint32_t from) {
  std::vector<std::uint16_t> bits(0x10000 + kGuards);
  for (std::uint16_t& one : bits) {
    one = static_cast<std::uint16_t>(from);
    from += step;
  }
  return bits;
}

/// Numbers of either sign and of many sizes.
template <class T>
std::vector<T> numbers(std::uint32_t seed) {
  std::vector<T> made(0x10000 + kGuards);
  for (T& one : made) {
    seed = seed * 1664525u + 1013904223u;
    const int exponent = static_cast<int>(seed >> 27) - 16;
    one = std::ldexp(static_cast<T>(static_cast<std::int32_t>(seed)),
                     exponent - 31);
  }
  return made;
}

void on_each_target(const std::function<void()>& check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
}

/// `is_none`: for what is no number, which has many forms.
template <class T, class Share, class Fast, class Plain, class IsNone>
void expect_same(const std::vector<T>& other, const std::vector<T>& own,
                 const Fast& fast, const Plain& plain, const IsNone& is_none) {
  for (const Share share : {Share(0), Share(0.3), Share(0.5), Share(1)}) {
    const MixShares<Share> shares{share, 1 - share};
    on_each_target([&] {
      for (const std::size_t count : kCounts) {
        std::vector<T> got = own;
        std::vector<T> expected = own;
        fast(other.data(), count, shares, got.data());
        plain(other.data(), count, shares, expected.data());
        for (std::size_t i = 0; i < own.size(); ++i) {
          if (is_none(got[i]) && is_none(expected[i])) continue;
          ASSERT_EQ(got[i], expected[i])
              << i << " of " << count << ", " << share;
        }
      }
    });
  }
}

TEST(MixKernelsTest, MixFloatsOf32And64BitsAsThePlainLoopsDo) {
  expect_same<float, float>(numbers<float>(1), numbers<float>(2), mix_float32,
                            portable::mix_floats<float>,
                            [](float one) { return std::isnan(one); });
  expect_same<double, double>(numbers<double>(3), numbers<double>(4),
                              mix_float64, portable::mix_floats<double>,
                              [](double one) { return std::isnan(one); });
}

TEST(MixKernelsTest, MixAllFloatsOf16BitsAsThePlainLoopsDo) {
  for (const std::uint32_t step : {1U, 5U, 40503U}) {
    expect_same<std::uint16_t, float>(
        all_bits(step, 17), all_bits(1, 0), mix_float16, portable::mix_float16,
        [](std::uint16_t one) { return std::isnan(of_float16(one)); });
    expect_same<std::uint16_t, float>(
        all_bits(step, 17), all_bits(1, 0), mix_bfloat16,
        portable::mix_bfloat16,
        [](std::uint16_t one) { return std::isnan(of_bfloat16(one)); });
  }
}

TEST(MixKernelsTest, KnowsWhatAHalfOfEachIs) {
  std::vector<float> own = {1, 2, -4, 1, 1, 1, 1, 1, 10};
  const std::vector<float> other = {3, 2, 4, 0, 0, 0, 0, 0, 0};
  mix_float32(other.data(), own.size(), {0.5F, 0.5F}, own.data());
  EXPECT_EQ(own, std::vector<float>({2, 2, 0, .5F, .5F, .5F, .5F, .5F, 5}));
  std::uint16_t small = to_float16(3);
  const std::uint16_t beside = to_float16(5);
  mix_float16(&beside, 1, {0.25F, 0.75F}, &small);
  EXPECT_EQ(of_float16(small), 4.5F);
}

}  // namespace
}  // namespace leat
