#include "leat/plan/interleave.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using Units = std::vector<std::uint32_t>;

Units units_of(std::vector<double> weights,
               std::uint32_t most = Interleave::kMostUnits) {
  return Interleave::units_of(weights, most);
}

/// The sources of the first turns.
std::vector<std::uint32_t> first_of(const Interleave& turns,
                                    std::uint64_t count) {
  std::vector<std::uint32_t> sources;
  for (std::uint64_t i = 0; i < count; ++i) {
    sources.push_back(turns.at(i).source);
  }
  return sources;
}

TEST(InterleaveTest, WeightsBecomeAsFewUnitsAsGiveThemExactly) {
  EXPECT_THAT(units_of({0.75, 0.25}), ElementsAre(3, 1));
  EXPECT_THAT(units_of({2, 4, 0}), ElementsAre(1, 2, 0));
  EXPECT_THAT(units_of({0.1, 0.2, 0.7}), ElementsAre(1, 2, 7));
  EXPECT_THAT(units_of({1e300, 1e300}), ElementsAre(1, 1));
}

TEST(InterleaveTest, OtherWeightsAreAsCloseAsUnitsAllow) {
  const std::vector<double> weights = {std::sqrt(2), std::sqrt(3), 1e-9};
  const Units units = units_of(weights, 1 << 16);

  EXPECT_EQ(std::accumulate(units.begin(), units.end(), 0U), 1U << 16);
  const double sum = weights[0] + weights[1] + weights[2];
  EXPECT_NEAR(units[0], weights[0] / sum * (1 << 16), 1.01);
  EXPECT_EQ(units[2], 1U);  // It comes now and then.
}

TEST(InterleaveTest, EvenTurnsLieAsEvenlyAsCanBe) {
  EXPECT_THAT(first_of(Interleave(Units{3, 1}, Composition::kStratified, 0), 8),
              ElementsAre(0, 0, 1, 0, 0, 0, 1, 0));
  EXPECT_THAT(first_of(Interleave(Units{1}, Composition::kStratified, 0), 3),
              ElementsAre(0, 0, 0));
}

TEST(InterleaveTest, RandomTurnsFollowFromTheKeyAlone) {
  const Units units = {1, 2};
  const Interleave a(units, Composition::kRandom, 7);
  const Interleave b(units, Composition::kRandom, 8);

  EXPECT_EQ(first_of(a, 20'000),
            first_of(Interleave(units, Composition::kRandom, 7), 20'000));
  EXPECT_NE(first_of(a, 100), first_of(b, 100));
}

Units some_units() {
  const auto sources = *rc::gen::inRange<std::size_t>(1, 65);
  Units units(sources);
  for (std::uint32_t& its : units) {
    its = *rc::gen::inRange<std::uint32_t>(0, 200);
  }
  units[*rc::gen::inRange<std::size_t>(0, sources)] += 1;
  return units;
}

Composition some_composition() {
  return *rc::gen::element(Composition::kRandom, Composition::kStratified);
}

RC_GTEST_PROP(InterleaveProperty, PlacesAndTurnsFollowFromEachOther, ()) {
  const Units units = some_units();
  const Interleave turns(units, some_composition(),
                         *rc::gen::arbitrary<std::uint64_t>());
  const auto begin = *rc::gen::inRange<std::uint64_t>(0, 1'000'000'000);

  std::vector<std::uint64_t> had(units.size());
  for (std::uint32_t i = 0; i < units.size(); ++i) {
    had[i] = turns.turns_before(i, begin);
  }
  RC_ASSERT(std::accumulate(had.begin(), had.end(), std::uint64_t{0}) == begin);
  for (std::uint64_t at = begin; at < begin + 300; ++at) {
    const Interleave::Turn turn = turns.at(at);
    RC_ASSERT(turn.number == had[turn.source]++);
    RC_ASSERT(turns.position_of(turn) == at);
    RC_ASSERT(turns.turns_before(turn.source, at + 1) == had[turn.source]);
  }
}

RC_GTEST_PROP(InterleaveProperty, EvenTurnsAreNeverOneOffTheirShare, ()) {
  const Units units = some_units();
  const std::uint64_t sum =
      std::accumulate(units.begin(), units.end(), std::uint64_t{0});
  const Interleave turns(units, Composition::kStratified, 0);
  std::vector<std::int64_t> had(units.size());

  for (std::uint64_t at = 0; at < 2 * sum; ++at) {
    ++had[turns.at(at).source];
    std::int64_t farthest = 0;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const auto over = had[i] * static_cast<std::int64_t>(sum) -
                        static_cast<std::int64_t>((at + 1) * units[i]);
      farthest = std::max(farthest, std::abs(over));
    }
    RC_ASSERT(farthest < static_cast<std::int64_t>(sum));
  }
}

TEST(InterleaveTest, RandomTurnsAreWithinFourSigmaOfTheirShare) {
  const Units units = {600, 300, 90, 9, 1};
  for (std::uint64_t key = 0; key < 20; ++key) {
    const Interleave turns(units, Composition::kRandom, key);
    for (const std::uint64_t n : {500, 2500, 6250, 9000, 9999}) {
      for (std::uint32_t i = 0; i < units.size(); ++i) {
        const double mean = static_cast<double>(n) * units[i] / 1000;
        const double sigma = std::sqrt(mean * (1 - units[i] / 1000.0));
        const auto had = static_cast<double>(turns.turns_before(i, n));
        // A turn is whole.
        EXPECT_LE(std::abs(had - mean), 4 * sigma + 0.5) << i << " of " << n;
      }
    }
  }
}

}  // namespace
}  // namespace leat
