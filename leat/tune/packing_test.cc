#include "leat/tune/packing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace leat {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

double worth_of(const std::vector<PackingItem>& items,
                const std::vector<double>& amounts) {
  double worth = 0;
  for (std::size_t j = 0; j < items.size(); ++j) {
    worth += items[j].worth * amounts[j];
  }
  return worth;
}

bool fits(const std::vector<PackingItem>& items,
          const std::vector<double>& amounts, const PackedAmounts& capacity) {
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    double used = 0;
    for (std::size_t j = 0; j < items.size(); ++j) {
      used += items[j].needs[r] * amounts[j];
    }
    if (used > capacity[r] + 1e-6 * (1 + capacity[r])) return false;
  }
  return true;
}

std::vector<PackingItem> random_items(std::mt19937_64& random, std::size_t most,
                                      std::size_t resources) {
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<PackingItem> items(1 + random() % most);
  for (PackingItem& item : items) {
    item.worth = part(random);
    item.most = part(random) < 0.1 ? 0 : 100 * part(random);
    item.needs.resize(resources);
    for (double& need : item.needs) {
      need = part(random) < 0.3 ? 0 : std::pow(10, 3 * part(random));
    }
  }
  return items;
}

/// Any amounts, grown until something runs out.
std::vector<double> random_amounts(const std::vector<PackingItem>& items,
                                   const PackedAmounts& capacity,
                                   std::mt19937_64& random) {
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<double> amounts(items.size(), 0);
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  PackedAmounts left = capacity;
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::size_t j : order) {
      double more =
          (items[j].most - amounts[j]) * (pass == 0 ? part(random) : 1.0);
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (items[j].needs[r] > 0) {
          more = std::min(more, std::max(0.0, left[r] / items[j].needs[r]));
        }
      }
      amounts[j] += more;
      for (std::size_t r = 0; r < left.size(); ++r) {
        left[r] -= more * items[j].needs[r];
      }
    }
  }
  return amounts;
}

TEST(PackingTest, AnExampleSolvedByHand) {
  // 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18: 36 at (2, 6).
  const std::vector<PackingItem> items = {
      {.worth = 3, .most = 4, .needs = {0, 0, 3}},
      {.worth = 5, .most = 100, .needs = {0, 2, 2}}};

  const auto amounts = pack(items, {kNoEnd, 12, 18});

  EXPECT_NEAR(amounts[0], 2, 1e-9);
  EXPECT_NEAR(amounts[1], 6, 1e-9);
}

TEST(PackingTest, NothingFitsIntoNothingButWhatNeedsNothing) {
  const std::vector<PackingItem> items = {
      {.worth = 1, .most = 5, .needs = {1, 0, 0}},
      {.worth = 1, .most = 5, .needs = {0, 1, 0}}};

  EXPECT_EQ(pack(items, {0, kNoEnd, kNoEnd}), (std::vector<double>{0, 5}));
  EXPECT_TRUE(pack({}, {1, 1, 1}).empty());
}

RC_GTEST_PROP(PackingProperty, OfOneResourceTheDensestComesFirst,
              (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  std::vector<PackingItem> items = random_items(random, 8, 3);
  for (PackingItem& item : items) item.needs = {item.needs[0] + 1, 0, 0};
  const double capacity = 50.0 * static_cast<double>(random() % 1000);

  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return items[a].worth / items[a].needs[0] >
           items[b].worth / items[b].needs[0];
  });
  std::vector<double> greedy(items.size(), 0);
  double left = capacity;
  for (const std::size_t j : order) {
    greedy[j] = std::min(items[j].most, left / items[j].needs[0]);
    left -= greedy[j] * items[j].needs[0];
  }
  const auto amounts = pack(items, {capacity, kNoEnd, kNoEnd});

  RC_ASSERT(fits(items, amounts, {capacity, kNoEnd, kNoEnd}));
  RC_ASSERT(std::abs(worth_of(items, amounts) - worth_of(items, greedy)) <=
            1e-6 * (1 + worth_of(items, greedy)));
}

RC_GTEST_PROP(PackingProperty, OfManyResourcesNothingThatFitsIsBetter,
              (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  PackedAmounts capacity(1 + random() % 6);
  const std::vector<PackingItem> items =
      random_items(random, 6, capacity.size());
  for (double& amount : capacity) {
    amount = random() % 5 == 0 ? kNoEnd
                               : 100.0 * static_cast<double>(random() % 1000);
  }

  const auto amounts = pack(items, capacity);

  RC_ASSERT(fits(items, amounts, capacity));
  for (std::size_t j = 0; j < items.size(); ++j) {
    RC_ASSERT(amounts[j] >= 0 && amounts[j] <= items[j].most);
  }
  for (int i = 0; i < 200; ++i) {
    const auto other = random_amounts(items, capacity, random);
    RC_ASSERT(worth_of(items, amounts) >=
              worth_of(items, other) * (1 - 1e-6) - 1e-9);
  }
}

}  // namespace
}  // namespace leat
