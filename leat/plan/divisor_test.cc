#include "leat/plan/divisor.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>

namespace leat {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

void expect_division(std::uint64_t x, std::uint64_t by) {
  const Divisor::Parts parts = Divisor(by).divide(x);
  EXPECT_EQ(parts.quotient, x / by) << x << " / " << by;
  EXPECT_EQ(parts.remainder, x % by) << x << " / " << by;
}

TEST(DivisorTest, DividesAtTheEdges) {
  for (const std::uint64_t by :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
        std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1,
        std::uint64_t{1} << 63, kMost - 1, kMost}) {
    for (const std::uint64_t x : {std::uint64_t{0}, std::uint64_t{1}, by - 1,
                                  by, by + 1, 2 * by - 1, kMost - 1, kMost}) {
      expect_division(x, by);
    }
  }
}

RC_GTEST_PROP(DivisorProperty, DividesAsDivisionDoes,
              (std::uint64_t x, std::uint64_t by)) {
  // Drawn numbers are small; mixed ones are of any size.
  const auto shift = *rc::gen::inRange(0, 64);
  by = (by * 0x9e3779b97f4a7c15ULL) >> shift;
  RC_PRE(by != 0);
  x *= 0xbf58476d1ce4e5b9ULL;

  const Divisor::Parts parts = Divisor(by).divide(x);

  RC_ASSERT(parts.quotient == x / by);
  RC_ASSERT(parts.remainder == x % by);
}

}  // namespace
}  // namespace leat
