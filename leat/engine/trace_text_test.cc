#include "leat/engine/trace_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace leat {
namespace {

template <class T>
std::string text_of(T value) {
  TraceText text;
  text.make_room(TraceText::kMostDigits);
  text.put(value);
  EXPECT_LE(text.size(), TraceText::kMostDigits);
  return std::string(text.view());
}

TEST(TraceTextTest, WritesTimesInMicrosecondsToTheNanosecond) {
  EXPECT_EQ(text_of(Nanoseconds(0)), "0.000");
  EXPECT_EQ(text_of(Nanoseconds(7)), "0.007");
  EXPECT_EQ(text_of(Nanoseconds(1'090)), "1.090");
  EXPECT_EQ(text_of(Nanoseconds(-1'234'567)), "-1234.567");
  EXPECT_EQ(text_of(Nanoseconds::max()), "9223372036854775.807");
  EXPECT_EQ(text_of(Nanoseconds::min()), "-9223372036854775.808");
}

TEST(TraceTextTest, WritesNumbersOfAnySize) {
  EXPECT_EQ(text_of(std::uint64_t{0}), "0");
  EXPECT_EQ(text_of(std::numeric_limits<std::uint64_t>::max()),
            "18446744073709551615");
}

TEST(TraceTextTest, KeepsWhatItHoldsWhenItGrows) {
  TraceText text;
  std::string expected;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    text.make_room(TraceText::kMostDigits + 1);
    text.put(i);
    text.put(",");
    expected += std::to_string(i) + ",";
  }
  EXPECT_EQ(text.view(), expected);

  text.clear();
  EXPECT_EQ(text.size(), 0u);
}

}  // namespace
}  // namespace leat
