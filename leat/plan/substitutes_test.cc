#include "leat/plan/substitutes.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "leat/plan/drawn_order.h"
#include "leat/plan/mixed_order.h"

namespace leat {
namespace {

constexpr std::uint64_t kSeed = 7;

EpochOrder shuffled(std::uint64_t samples, std::uint64_t epoch = 3) {
  return {samples, {.shuffle = Shuffle::kFull, .seed = kSeed}, nullptr, epoch};
}

std::vector<std::uint64_t> substitutes_of(const EpochOrder& order,
                                          std::uint64_t position,
                                          std::size_t count,
                                          std::uint64_t epoch = 3) {
  Substitutes substitutes(kSeed, epoch, 0, position);
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(substitutes.next(order)->value);
  }
  return all;
}

TEST(SubstitutesTest, FollowFromSeedEpochAndPosition) {
  const EpochOrder order = shuffled(1000);

  EXPECT_EQ(substitutes_of(order, 5, 20), substitutes_of(order, 5, 20));
  EXPECT_NE(substitutes_of(order, 5, 20), substitutes_of(order, 6, 20));
  EXPECT_NE(substitutes_of(order, 5, 20),
            substitutes_of(order, 5, 20, /*epoch=*/4));
}

TEST(SubstitutesTest, EachSampleIsAsLikely) {
  constexpr std::uint64_t kSamples = 50;
  constexpr std::size_t kEach = 200;
  const EpochOrder order = shuffled(kSamples);
  std::map<std::uint64_t, std::size_t> times;

  for (std::uint64_t p = 0; p < kSamples; ++p) {
    for (const std::uint64_t sample : substitutes_of(order, p, kEach))
      ++times[sample];
  }

  ASSERT_EQ(times.size(), kSamples);
  for (const auto& [sample, count] : times) {  // 200 of each, and 6 sigma.
    EXPECT_GT(count, 110u) << sample;
    EXPECT_LT(count, 290u) << sample;
  }
}

TEST(SubstitutesTest, AreOfTheSameSource) {
  const auto mix = MixedOrder::make(
      {.sources = {{.name = "large", .samples = 900, .weight = 0.95},
                   {.name = "small", .samples = 10, .weight = 0.05}},
       .samples_per_epoch = 1000},
      {.shuffle = Shuffle::kFull, .seed = kSeed}, nullptr);
  ASSERT_TRUE(mix);
  const EpochOrder order(
      910, {.shuffle = Shuffle::kDrawn, .seed = kSeed, .drawn = mix->get()},
      nullptr, 0);

  std::size_t of_small = 0;
  for (std::uint64_t p = 0; p < order.size(); ++p) {
    const bool is_small = order.at(p).value >= 900;
    of_small += is_small ? 1 : 0;
    for (const std::uint64_t drawn : substitutes_of(order, p, 3)) {
      EXPECT_EQ(drawn >= 900, is_small) << p;
    }
  }
  EXPECT_GT(of_small, 0u);
}

TEST(SubstitutesTest, AreOfTheKnownPartOfAGivenEpoch) {
  GivenOrder given(100);
  ASSERT_TRUE(given.give(0, {.first = 90, .samples = {3, 1, 4, 15, 9, 2}}));
  const EpochOrder order(100, {.shuffle = Shuffle::kDrawn, .drawn = &given},
                         nullptr, 0);

  for (const std::uint64_t drawn : substitutes_of(order, 92, 50, 0)) {
    EXPECT_TRUE(drawn == 3 || drawn == 1 || drawn == 4 || drawn == 15 ||
                drawn == 9 || drawn == 2);
  }
}

}  // namespace
}  // namespace leat
