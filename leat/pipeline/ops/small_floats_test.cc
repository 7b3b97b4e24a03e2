#include "leat/pipeline/ops/small_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace leat {
namespace {

/// The value of a binary16, by its definition.
double value_of_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double size = exponent == 0 ? std::ldexp(fraction, -14)
                                    : std::ldexp(1 + fraction, exponent - 15);
  return bits >> 15 != 0 ? -size : size;
}

double value_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

TEST(SmallFloatsTest, KeepEveryNumberThatTheyHave) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto small = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7c00) != 0x7c00) {
      const auto value = static_cast<float>(value_of_float16(small));
      EXPECT_EQ(to_float16(value), small);
    }
    if ((bits & 0x7f80) != 0x7f80) {
      const auto value = static_cast<float>(value_of_bfloat16(small));
      EXPECT_EQ(to_bfloat16(value), small);
    }
  }
}

TEST(SmallFloatsTest, AreTheValuesThatTheirBitsSay) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto small = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7c00) != 0x7c00) {
      ASSERT_EQ(of_float16(small), value_of_float16(small)) << bits;
    }
    if ((bits & 0x7f80) != 0x7f80) {
      ASSERT_EQ(of_bfloat16(small), value_of_bfloat16(small)) << bits;
    }
  }
  EXPECT_EQ(of_float16(0x8000), 0.0f);
  EXPECT_TRUE(std::signbit(of_float16(0x8000)));
  EXPECT_EQ(of_float16(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(of_float16(0x7c01)));
  EXPECT_TRUE(std::isnan(of_bfloat16(0xff81)));
}

/// Between two neighbours: below the middle, in it, and above it.
template <class Make, class ValueOf>
void expect_nearest(std::uint16_t last, const Make& make,
                    const ValueOf& value_of) {
  for (std::uint16_t bits = 0; bits < last; ++bits) {
    const double low = value_of(bits);
    const double high = value_of(static_cast<std::uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    const std::uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(make(middle), even) << bits;
    ASSERT_EQ(make(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(make(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(make(-middle), even | 0x8000);
  }
}

TEST(SmallFloatsTest, RoundToTheNearestAndHalvesToEven) {
  expect_nearest(0x7bff, to_float16, value_of_float16);
  // The middle of bfloat16's first few is a subnormal float: exact too.
  expect_nearest(0x7f7f, to_bfloat16, value_of_bfloat16);
}

TEST(SmallFloatsTest, EndInInfinityAndKeepWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_float16(65'519.996f), 0x7bff);
  EXPECT_EQ(to_float16(65'520.0f), 0x7c00);
  EXPECT_EQ(to_float16(-infinity), 0xfc00);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bfloat16(-infinity), 0xff80);
  const float none = std::bit_cast<float>(0x7f80'0001U);
  EXPECT_GT(to_float16(none) & 0x7fff, 0x7c00);
  EXPECT_GT(to_bfloat16(none) & 0x7fff, 0x7f80);
}

}  // namespace
}  // namespace leat
