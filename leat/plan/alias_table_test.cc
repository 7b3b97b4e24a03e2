#include "leat/plan/alias_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;

AliasTable table_of(const std::vector<double>& weights) {
  auto table = AliasTable::make(weights);
  EXPECT_TRUE(table) << table.error().message();
  return *table;
}

std::string refusal(const std::vector<double>& weights) {
  const auto table = AliasTable::make(weights);
  return table ? "" : table.error().message();
}

/// Draws with numbers that a counter gives.
std::vector<std::uint64_t> draws(const AliasTable& table, std::uint64_t count) {
  std::vector<std::uint64_t> drawn(table.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    ++drawn[table.draw(mix64(2 * i), mix64(2 * i + 1))];
  }
  return drawn;
}

/// Over the things of weight above 0: small where counts are as expected.
double chi_square(const std::vector<std::uint64_t>& drawn,
                  const std::vector<double>& weights, std::uint64_t count) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  double chi = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const double expected = weights[i] / sum * static_cast<double>(count);
    const double off = static_cast<double>(drawn[i]) - expected;
    chi += off * off / expected;
  }
  return chi;
}

// The bounds are of a chance of 1 in 1,000; with numbers that never change, a
// table that is right stays within them.
TEST(AliasTableTest, EachIsDrawnAsOftenAsItsWeightSays) {
  const std::vector<double> weights = {1, 2, 3, 4, 0, 10, 0.5, 79.5};

  const auto drawn = draws(table_of(weights), 1'000'000);

  EXPECT_LT(chi_square(drawn, weights, 1'000'000), 22.5);  // 6 degrees.
  EXPECT_EQ(drawn[4], 0u);
}

TEST(AliasTableTest, ManyOfUnlikeWeightsAreDrawnAsTheySay) {
  std::vector<double> weights;
  for (int i = 0; i < 1000; ++i) weights.push_back(1 + i % 17 * 0.37);

  const auto drawn = draws(table_of(weights), 2'000'000);

  EXPECT_LT(chi_square(drawn, weights, 2'000'000), 1143);  // 999 degrees.
}

TEST(AliasTableTest, OneThatHasAllWeightIsAlwaysDrawn) {
  const auto drawn = draws(table_of({0, 0, 3e-9, 0}), 1000);

  EXPECT_EQ(drawn, (std::vector<std::uint64_t>{0, 0, 1000, 0}));
}

TEST(AliasTableTest, WeightsWhoseSumIsPastAnyDoubleKeepTheirRatios) {
  const double huge = std::numeric_limits<double>::max();

  const AliasTable table = table_of({huge, huge, huge, huge / 4});

  const std::vector<std::uint64_t> shares = table.shares();
  EXPECT_NEAR(static_cast<double>(shares[0]) / shares[3], 4, 1e-12);
}

TEST(AliasTableTest, WhatIsNoWeightIsRefusedByItsIndex) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();

  EXPECT_THAT(refusal({1, nan}), HasSubstr("weight 1 is nan"));
  EXPECT_THAT(refusal({1, 2, -0.5}), HasSubstr("weight 2 is -0.5"));
  EXPECT_THAT(refusal({infinite, 2}), HasSubstr("weight 0 is inf"));
  EXPECT_THAT(refusal({0, 0}), HasSubstr("none of the 2 weights is above 0"));
  EXPECT_THAT(refusal({}), HasSubstr("none of the 0 weights"));
}

// A saved state counts on these.
TEST(AliasTableTest, WhatIsDrawnNeverChanges) {
  const AliasTable table = table_of({1, 2, 3, 4, 5});

  std::vector<std::uint64_t> drawn;
  for (std::uint64_t i = 0; i < 12; ++i) {
    drawn.push_back(table.draw(mix64(2 * i), mix64(2 * i + 1)));
  }

  EXPECT_EQ(drawn,
            (std::vector<std::uint64_t>{4, 2, 2, 3, 3, 0, 2, 2, 1, 4, 1, 3}));
}

RC_GTEST_PROP(AliasTableProperty, SharesAreTheWeights, ()) {
  const auto units =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint32_t>>(
          rc::gen::arbitrary<std::uint32_t>()));
  std::vector<double> weights(units.begin(), units.end());
  weights[*rc::gen::inRange<std::size_t>(0, weights.size())] += 1;
  double sum = 0;
  for (const double weight : weights) sum += weight;

  const AliasTable table = table_of(weights);

  const std::vector<std::uint64_t> shares = table.shares();
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share =
        static_cast<double>(shares[i]) / static_cast<double>(table.total());
    RC_ASSERT(std::abs(share - weights[i] / sum) < 1e-15);
    RC_ASSERT((shares[i] == 0) == (weights[i] == 0));
    all += shares[i];
  }
  RC_ASSERT(all == table.total());
}

RC_GTEST_PROP(AliasTableProperty, NothingOfWeightZeroIsEverDrawn,
              (std::uint64_t column, std::uint64_t within)) {
  const auto weights =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint8_t>>(
          rc::gen::arbitrary<std::uint8_t>()));
  std::vector<double> as_double(weights.begin(), weights.end());
  as_double[*rc::gen::inRange<std::size_t>(0, weights.size())] += 1;

  const std::uint64_t drawn = table_of(as_double).draw(column, within);

  RC_ASSERT(as_double[drawn] > 0);
}

}  // namespace
}  // namespace leat
