#include "leat/plan/permutation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace leat {
namespace {

/// How many standard deviations the chi-square of `counts` is from what equal
/// chances give (Wilson and Hilferty 1931). Beyond 5 either way is not chance:
/// every key below is fixed, so a test that passes once passes always.
double deviations_from_uniform(const std::vector<std::uint64_t>& counts,
                               double degrees_of_freedom) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    chi_square += off * off / expected;
  }
  const double v = 2.0 / (9.0 * degrees_of_freedom);
  return (std::cbrt(chi_square / degrees_of_freedom) - (1 - v)) / std::sqrt(v);
}

void expect_permutation(std::uint64_t n, std::uint64_t seed) {
  const Permutation order(n, seed, /*stream=*/1);
  std::vector<bool> seen(n, false);
  for (std::uint64_t p = 0; p < n; ++p) {
    const std::uint64_t value = order.at(p);
    ASSERT_LT(value, n) << "n=" << n;
    ASSERT_FALSE(seen[value]) << "n=" << n << " gives " << value << " twice";
    ASSERT_EQ(order.position_of(value), p) << "n=" << n;
    seen[value] = true;
  }
}

TEST(PermutationTest, IsAPermutationWithItsInverseForEveryLengthTo2000) {
  for (std::uint64_t n = 0; n <= 2000; ++n) expect_permutation(n, n);
}

TEST(PermutationTest, IsAPermutationWhereTheTableEndsAndAtSquares) {
  constexpr std::uint64_t kEnd = Permutation::kTableBelow;
  for (std::uint64_t n = kEnd - 8; n < kEnd + 200; ++n) {
    expect_permutation(n, n);
  }
  for (const std::uint64_t side : {65, 100, 255, 256, 257, 1000}) {
    for (const std::uint64_t n :
         {side * side - 1, side * side, side * side + 1}) {
      expect_permutation(n, side);
    }
  }
}

RC_GTEST_PROP(PermutationProperty, InvertsItselfAtAnyLengthTo2To42,
              (std::uint64_t seed, std::uint64_t stream)) {
  const auto bits = *rc::gen::inRange<unsigned>(1, 43);
  const auto n = *rc::gen::inRange<std::uint64_t>(
      std::uint64_t{1} << (bits - 1), std::uint64_t{1} << bits);
  const Permutation order(n, seed, stream);
  for (int i = 0; i < 50; ++i) {
    const auto p = *rc::gen::inRange<std::uint64_t>(0, n);
    RC_ASSERT(order.at(p) < n);
    RC_ASSERT(order.position_of(order.at(p)) == p);
    RC_ASSERT(order.at(order.position_of(p)) == p);
  }
}

RC_GTEST_PROP(PermutationProperty, SeveralTogetherAreEachByItself,
              (std::uint64_t seed)) {
  const auto bits = *rc::gen::inRange<unsigned>(1, 43);
  const auto n = *rc::gen::inRange<std::uint64_t>(
      std::uint64_t{1} << (bits - 1), std::uint64_t{1} << bits);
  std::vector<Permutation> orders;
  std::array<const Permutation*, Permutation::kTogether> pointers;
  for (std::uint64_t i = 0; i < Permutation::kTogether; ++i) {
    orders.emplace_back(n, seed, i);
  }
  for (std::size_t i = 0; i < orders.size(); ++i) pointers[i] = &orders[i];
  for (int i = 0; i < 50; ++i) {
    const auto value = *rc::gen::inRange<std::uint64_t>(0, n);
    const auto found = Permutation::positions_of(pointers, value);
    for (std::size_t j = 0; j < orders.size(); ++j) {
      RC_ASSERT(found[j] == orders[j].position_of(value));
    }
  }
}

// Just past a square many a result lies beyond the end, and is dealt again.
TEST(PermutationTest, SeveralTogetherWalkOnPastTheEnd) {
  for (const std::uint64_t n : {64 * 64 + 1, 65 * 65 - 1}) {
    const Permutation a(n, 1, 0);
    const Permutation b(n, 1, 1);
    for (std::uint64_t value = 0; value < n; ++value) {
      const auto found =
          Permutation::positions_of({&a, &b, &b, &a, &a, &a, &a, &b}, value);
      ASSERT_EQ(found[0], a.position_of(value));
      ASSERT_EQ(found[1], b.position_of(value));
      ASSERT_EQ(found[2], found[1]);
      ASSERT_EQ(found[3], found[0]);
      ASSERT_EQ(found[6], found[0]);
      ASSERT_EQ(found[7], found[1]);
    }
  }
}

TEST(PermutationTest, InvertsItselfAtTheLargestLength) {
  for (const std::uint64_t n :
       {Permutation::kMaxSize, Permutation::kMaxSize - 1,
        (std::uint64_t{1} << 40) + 12345}) {
    const Permutation order(n, 7, 7);
    for (const std::uint64_t p : {std::uint64_t{0}, n / 3, n - 1}) {
      ASSERT_LT(order.at(p), n);
      ASSERT_EQ(order.position_of(order.at(p)), p);
    }
  }
}

TEST(PermutationTest, SeedAndStreamEachChangeTheOrder) {
  for (const std::uint64_t n : {100, 5000, 1000000}) {
    const auto same = [](const Permutation& a, const Permutation& b) {
      std::uint64_t count = 0;
      for (std::uint64_t p = 0; p < 100; ++p) count += a.at(p) == b.at(p);
      return count;
    };
    const Permutation order(n, 1, 2);

    EXPECT_EQ(same(order, Permutation(n, 1, 2)), 100u);
    EXPECT_LT(same(order, Permutation(n, 1, 3)), 10u);
    EXPECT_LT(same(order, Permutation(n, 2, 2)), 10u);
    EXPECT_LT(same(order, Permutation(n, 2, 1)), 10u);
  }
}

// Over many keys, every value stands at every position equally often.
TEST(PermutationTest, IsUniformOverPositionsWhenSmall) {
  for (const std::uint64_t n : {2, 3, 5, 7, 16, 61}) {
    std::vector<std::uint64_t> counts(n * n, 0);
    for (std::uint64_t key = 0; key < 20000; ++key) {
      const Permutation order(n, key, 0);
      for (std::uint64_t p = 0; p < n; ++p) ++counts[p * n + order.at(p)];
    }
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_LT(std::abs(deviations_from_uniform(counts, freedom)), 5)
        << "n=" << n;
  }
}

// All 120 orders of five things are equally likely.
TEST(PermutationTest, EveryOrderOfFiveIsEquallyLikely) {
  std::vector<std::uint64_t> counts(5 * 5 * 5 * 5, 0);
  for (std::uint64_t key = 0; key < 60000; ++key) {
    const Permutation order(5, 42, key);
    ++counts[((order.at(0) * 5 + order.at(1)) * 5 + order.at(2)) * 5 +
             order.at(3)];
  }
  std::erase(counts, 0u);  // Places that would name a thing twice.
  ASSERT_EQ(counts.size(), 120u);
  EXPECT_LT(std::abs(deviations_from_uniform(counts, 119)), 5);
}

// Positions and values in 32 x 32 boxes: each box gets its share of one order.
TEST(PermutationTest, IsUniformOverPositionsWhenLarge) {
  constexpr std::uint64_t kBoxes = 32;
  for (const std::uint64_t n : {4096, 4097, 65536, 1000003}) {
    const std::uint64_t keys = 4000000 / n;
    std::vector<std::uint64_t> counts(kBoxes * kBoxes, 0);
    for (std::uint64_t key = 0; key < keys; ++key) {
      const Permutation order(n, /*seed=*/9, key);
      for (std::uint64_t p = 0; p < n; ++p) {
        ++counts[p * kBoxes / n * kBoxes + order.at(p) * kBoxes / n];
      }
    }
    EXPECT_LT(std::abs(deviations_from_uniform(
                  counts, (kBoxes - 1.0) * (kBoxes - 1.0))),
              5)
        << "n=" << n;
  }
}

/// How far apart, modulo n, the things at p and p + lag are: boxes of all of
/// 1 .. n - 1, counted over `positions` positions and `keys` keys.
std::vector<std::uint64_t> pair_distances(std::uint64_t n, std::uint64_t lag,
                                          std::uint64_t positions,
                                          std::uint64_t keys) {
  const std::uint64_t boxes = std::min<std::uint64_t>(n - 1, 64);
  std::vector<std::uint64_t> counts(boxes, 0);
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Permutation order(n, key, /*stream=*/3);
    for (std::uint64_t p = 0; p < positions && p + lag < n; ++p) {
      const std::uint64_t distance = (order.at(p + lag) + n - order.at(p)) % n;
      ++counts[(distance - 1) * boxes / (n - 1)];
    }
  }
  return counts;
}

TEST(PermutationTest, PairDistancesAreUniformAtEveryScale) {
  // Lengths that 1 + 64 k, so that all boxes are as wide.
  for (const std::uint64_t n : {5ULL, 65ULL, 4097ULL, 65537ULL, 1000001ULL,
                                1000000001ULL, (1ULL << 40) + 1}) {
    // Neighbours in the order, and in the network's rows: multiples of its
    // side.
    const auto side = static_cast<std::uint64_t>(
        std::ceil(std::sqrt(static_cast<double>(n))));
    for (const std::uint64_t lag :
         {std::uint64_t{1}, side, side + 1, 2 * side}) {
      if (lag >= n) continue;
      // One pair of each key, then many pairs of a few keys.
      const auto apart = pair_distances(n, lag, 1, 50000);
      const auto along = pair_distances(n, lag, 4000, n < 4096 ? 500 : 20);
      const auto freedom = static_cast<double>(apart.size() - 1);
      EXPECT_LT(std::abs(deviations_from_uniform(apart, freedom)), 5)
          << "n=" << n << " lag=" << lag;
      EXPECT_LT(deviations_from_uniform(along, freedom), 5)
          << "n=" << n << " lag=" << lag;
    }
  }
}

// A saved state names a position. If these change, states of before resume
// elsewhere: that needs a new version of the state, not new numbers here.
TEST(PermutationTest, TheOrderOfAKeyNeverChanges) {
  const auto first = [](const Permutation& order) {
    std::string text;
    for (std::uint64_t p = 0; p < 6; ++p) {
      text += std::to_string(order.at(p)) + " ";
    }
    return text;
  };

  EXPECT_EQ(first(Permutation(10, 0, 0)), "7 0 1 2 9 6 ");
  EXPECT_EQ(first(Permutation(50000, 0, 0)),
            "24348 12138 49612 34282 27294 15514 ");
  EXPECT_EQ(first(Permutation(1000000000, 42, 7)),
            "254874180 98906440 516744071 997938265 159125130 851616078 ");
}

}  // namespace
}  // namespace leat
