#include "leat/plan/scatter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace leat {
namespace {

RC_GTEST_PROP(ScatterProperty, IsABijectionWithItsInverse,
              (std::uint64_t key)) {
  const auto n = *rc::gen::inRange<std::uint64_t>(1, 3000);
  const Scatter scatter(n, key);
  std::vector<bool> is_taken(n, false);
  for (std::uint64_t x = 0; x < n; ++x) {
    const std::uint64_t y = scatter.at(x);
    RC_ASSERT(y < n);
    RC_ASSERT(!is_taken[y]);
    is_taken[y] = true;
    RC_ASSERT(scatter.inverse(y) == x);
  }
}

TEST(ScatterTest, HoldsForLargeNumbers) {
  const std::uint64_t n = (std::uint64_t{1} << 40) + 12345;
  const Scatter scatter(n, 7);
  for (std::uint64_t x = 0; x < n; x += n / 1000) {
    ASSERT_LT(scatter.at(x), n);
    ASSERT_EQ(scatter.inverse(scatter.at(x)), x);
  }
}

/// The deviation of counts from even ones, in units of the expected deviation.
double deviations(const std::vector<int>& counts, double draws) {
  const auto cells = static_cast<double>(counts.size());
  const double expected = draws / cells;
  double sum = 0;
  for (const int count : counts) {
    sum += (count - expected) * (count - expected) / expected;
  }
  return (sum - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

// Over keys, a value and a pair of neighbours come at any place equally often.
TEST(ScatterTest, OverKeysEveryPlaceIsAsLikely) {
  constexpr int kKeys = 40000;
  for (const std::uint64_t n : {5, 16, 61, 128}) {
    std::vector<int> of_first(n, 0);
    std::vector<int> of_distance(n - 1, 0);
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const Scatter scatter(n, key);
      ++of_first[scatter.at(0)];
      const std::uint64_t at = scatter.inverse(n / 2);
      const std::uint64_t next = scatter.inverse(n / 2 - 1);
      ++of_distance[(at + n - next) % n - 1];
    }
    EXPECT_LT(deviations(of_first, kKeys), 5) << n;
    EXPECT_LT(deviations(of_distance, kKeys), 5) << n;
  }
}

// A saved state counts on these.
TEST(ScatterTest, TheNumbersOfAKeyNeverChange) {
  const Scatter scatter(1000, 1);
  EXPECT_EQ((std::vector<std::uint64_t>{scatter.at(0), scatter.at(1),
                                        scatter.at(2), scatter.at(999)}),
            (std::vector<std::uint64_t>{705, 153, 895, 107}));
}

}  // namespace
}  // namespace leat
