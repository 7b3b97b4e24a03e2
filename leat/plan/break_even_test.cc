#include "leat/plan/break_even.h"

#include <gtest/gtest.h>

#include <random>

namespace leat {
namespace {

const Prices kBreakEvenPrices{.get_per_1000 = 1,
                              .list_per_1000 = 1000,
                              .nat_per_gb = 0.5,
                              .memory_per_gb_hour = 0.25,
                              .disk_per_gb_month = 7.3};
const Billing kBilling{.node_per_hour = 3, .is_behind_nat = true};

/// An hour an epoch, a quarter of it waiting; the whole data in each.
Way bucket() {
  return {.name = "bucket",
          .lists = 1,
          .epochs = {{.seconds = 3600,
                      .wait_seconds = 900,
                      .gets = 4000,
                      .get_bytes = 2e9}}};
}

/// Half an hour of copying, then three quarters of an hour an epoch.
Way copied() {
  return {.name = "copy",
          .copy = {.seconds = 1800,
                   .wait_seconds = 1800,
                   .gets = 8000,
                   .get_bytes = 4e9},
          .lists = 2,
          .epochs = {{.seconds = 2700}},
          .disk_bytes = 4e9};
}

TEST(BreakEvenTest, AWayCostsItsRequestsTrafficHoursAndRents) {
  const WayCost cost =
      cost_of(use_of(copied(), 2, 2), kBreakEvenPrices, kBilling);

  EXPECT_DOUBLE_EQ(cost.run.gets, 8);
  EXPECT_DOUBLE_EQ(cost.run.lists, 2);
  EXPECT_DOUBLE_EQ(cost.run.nat, 2);
  EXPECT_DOUBLE_EQ(cost.run.hours, 2 * 2.0 * 3);  // Two nodes, two hours.
  EXPECT_DOUBLE_EQ(cost.waiting, 2 * 0.5 * 3);
  EXPECT_DOUBLE_EQ(cost.disk, 4 * 2.0 / 730 * 7.3);
  EXPECT_EQ(cost.memory, 0);
  EXPECT_DOUBLE_EQ(cost.total(), 8 + 2 + 2 + 12 + 0.08);
}

TEST(BreakEvenTest, MemoryIsRentedByTheHour) {
  Way way = bucket();
  way.memory_bytes = 8e9;

  EXPECT_DOUBLE_EQ(
      cost_of(use_of(way, 3, 1), kBreakEvenPrices, kBilling).memory, 6);
}

TEST(BreakEvenTest, EpochsPastTheListedOnesAreAsTheLast) {
  Way way = bucket();
  way.epochs.push_back({.seconds = 360, .gets = 10});

  EXPECT_DOUBLE_EQ(use_of(way, 4, 1).usage.gets, 4000 + 3 * 10);
  EXPECT_DOUBLE_EQ(use_of(way, 4, 1).usage.node_hours, 1 + 3 * 0.1);
  EXPECT_DOUBLE_EQ(use_of(way, 1, 1).usage.gets, 4000);
}

TEST(BreakEvenTest, ACopyPaysFromTheEpochOnThatMadeUpForIt) {
  // An epoch: 4 + 1 + 3 = 8 dollars and a list, against 2.25 and rent of 0.03
  // after 8 + 2 + 2 + 1.5 and 0.02.
  const auto runs = cheapest_by_epochs(std::vector{bucket(), copied()}, 1,
                                       kBreakEvenPrices, kBilling);

  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].epochs, 1u);
  EXPECT_EQ(runs[0].way, 0u);
  EXPECT_EQ(runs[1].epochs, 3u);
  EXPECT_EQ(runs[1].way, 1u);
}

TEST(BreakEvenTest, EqualWaysKeepTheFirst) {
  const auto runs = cheapest_by_epochs(std::vector{bucket(), bucket()}, 1,
                                       kBreakEvenPrices, kBilling);

  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].way, 0u);
}

TEST(BreakEvenTest, WaysWhoseEpochsCostTheSameDoNotCross) {
  // Their totals differ by a LIST, and by how sums of such numbers round: at
  // some of these prices for the good of one way, at some for the other.
  Way dearer{
      .name = "a", .lists = 2, .epochs = {{.seconds = 18611, .gets = 9549657}}};
  Way cheaper = dearer;
  cheaper.lists = 1;
  for (int i = 0; i < 50; ++i) {
    const Prices prices{.get_per_1000 = 0.0004 * (i % 5),
                        .list_per_1000 = 0.005};
    const Billing billing{.node_per_hour = 2713.04 + i / 5};
    for (const auto& ways :
         {std::vector{dearer, cheaper}, std::vector{cheaper, dearer}}) {
      const auto runs = cheapest_by_epochs(ways, 1, prices, billing);

      ASSERT_EQ(runs.size(), 1u) << i;
      EXPECT_EQ(ways[runs[0].way].lists, 1) << i;
    }
  }
}

/// The slow, obvious way: every number of epochs is priced.
std::vector<CheapestFrom> one_by_one(std::span<const Way> ways,
                                     std::uint64_t most) {
  std::vector<CheapestFrom> runs;
  for (std::uint64_t epochs = 1; epochs <= most; ++epochs) {
    std::size_t best = runs.empty() ? 0 : runs.back().way;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto total = [&](std::size_t way) {
        return cost_of(use_of(ways[way], epochs, 2), kBreakEvenPrices, kBilling)
            .total();
      };
      if (total(i) < total(best)) best = i;
    }
    if (runs.empty() || runs.back().way != best) runs.push_back({epochs, best});
  }
  return runs;
}

TEST(BreakEvenTest, CrossingsAreThoseOfCountingOneByOne) {
  std::mt19937 random(7);
  const auto any = [&](double most) {
    return std::uniform_real_distribution<double>(0, most)(random);
  };
  constexpr std::uint64_t kMost = 400;
  for (int round = 0; round < 50; ++round) {
    std::vector<Way> ways(2 + round % 3);
    for (Way& way : ways) {
      way.copy = {.seconds = any(50000), .gets = any(20000)};
      way.epochs.resize(1 + random() % 4);
      for (WayPart& epoch : way.epochs) {
        epoch = {.seconds = any(1000), .gets = any(1000)};
      }
      way.disk_bytes = any(1e10);
    }

    auto told = cheapest_by_epochs(ways, 2, kBreakEvenPrices, kBilling);

    std::erase_if(told, [](const auto& run) { return run.epochs > kMost; });
    const auto counted = one_by_one(ways, kMost);
    ASSERT_EQ(told.size(), counted.size()) << round;
    for (std::size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].epochs, counted[i].epochs) << round;
      EXPECT_EQ(told[i].way, counted[i].way) << round;
    }
  }
}

TEST(BreakEvenTest, AtAnEvenPriceTwoWaysCostTheSame) {
  const WayUse first = use_of(copied(), 5, 2);
  const WayUse second = use_of(bucket(), 5, 2);
  std::size_t checked = 0;
  for (const EvenPrice& even :
       even_prices(first, second, kBreakEvenPrices, kBilling)) {
    Prices prices = kBreakEvenPrices;
    Billing billing = kBilling;
    double* price = even.price == "node_per_hour"  ? &billing.node_per_hour
                    : even.price == "get_per_1000" ? &prices.get_per_1000
                    : even.price == "nat_per_gb"   ? &prices.nat_per_gb
                                                   : &prices.disk_per_gb_month;
    *price = even.at;
    const auto lead = [&] {
      return cost_of(second, prices, billing).total() -
             cost_of(first, prices, billing).total();
    };
    EXPECT_NEAR(lead(), 0, 1e-9) << even.price;
    *price = even.at / 2;
    EXPECT_EQ(lead() > 0, even.is_first_cheaper_below) << even.price;
    ++checked;
  }
  EXPECT_EQ(checked, 1u);  // Rent alone: the copy gains by all other prices.
}

TEST(BreakEvenTest, APriceThatBothPayAlikeMakesNothingEven) {
  const WayUse use = use_of(bucket(), 1, 1);

  EXPECT_TRUE(even_prices(use, use, kBreakEvenPrices, kBilling).empty());
}

}  // namespace
}  // namespace leat
