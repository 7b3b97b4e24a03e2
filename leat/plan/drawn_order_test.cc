#include "leat/plan/drawn_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "leat/plan/next_use.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<std::uint64_t>;

std::shared_ptr<const WeightedOrder> weighted(std::vector<double> weights,
                                              std::uint64_t seed,
                                              std::uint64_t size) {
  auto made = WeightedOrder::make(weights, seed, size);
  EXPECT_TRUE(made) << made.error().message();
  return *made;
}

/// Keeps them all: options do not.
OrderOptions by(std::shared_ptr<const DrawnOrder> drawn) {
  static std::vector<std::shared_ptr<const DrawnOrder>> kept;
  kept.push_back(std::move(drawn));
  return {.shuffle = Shuffle::kDrawn, .drawn = kept.back().get()};
}

Ids all_drawn(const EpochOrder& order) {
  Ids ids;
  for (std::uint64_t p = 0; p < order.size(); ++p) {
    ids.push_back(order.at(p).value);
  }
  return ids;
}

TEST(WeightedOrderTest, AnEpochHasTheSizeAskedForAndWhatWeightsSay) {
  const EpochOrder order(3, by(weighted({1, 0, 3}, 5, 100'000)), nullptr, 2);

  ASSERT_EQ(order.size(), 100'000u);
  Ids counts(3);
  for (const std::uint64_t id : all_drawn(order)) ++counts[id];
  EXPECT_EQ(counts[1], 0u);
  EXPECT_NEAR(static_cast<double>(counts[0]), 25'000, 450);  // 3.3 sigma.
}

TEST(WeightedOrderTest, SeedsAndEpochsDrawApart) {
  const std::vector<double> weights(100, 1);
  std::set<Ids> found;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      found.insert(all_drawn(
          EpochOrder(100, by(weighted(weights, seed, 50)), nullptr, epoch)));
    }
  }

  EXPECT_EQ(found.size(), 16u);
  // And again the same.
  EXPECT_TRUE(found.contains(
      all_drawn(EpochOrder(100, by(weighted(weights, 3, 50)), nullptr, 3))));
}

// Two draws that follow each other have nothing to do with each other.
TEST(WeightedOrderTest, NeighboursAreIndependent) {
  constexpr std::uint64_t kDraws = 400'000;
  const EpochOrder order(4, by(weighted({1, 1, 1, 1}, 1, kDraws)), nullptr, 0);
  Ids pairs(16);
  for (std::uint64_t p = 0; p + 1 < kDraws; p += 2) {
    ++pairs[order.at(p).value * 4 + order.at(p + 1).value];
  }
  double chi = 0;
  for (const std::uint64_t count : pairs) {
    const double off = static_cast<double>(count) - kDraws / 32.0;
    chi += off * off / (kDraws / 32.0);
  }

  EXPECT_LT(chi, 37.7);  // 15 degrees: 1 in 1,000.
}

// A saved state counts on these.
TEST(WeightedOrderTest, TheOrderOfAFixedKeyNeverChanges) {
  const EpochOrder order(5, by(weighted({1, 2, 3, 4, 5}, 7, 12)), nullptr, 3);

  EXPECT_EQ(all_drawn(order), (Ids{0, 4, 4, 3, 1, 4, 2, 4, 2, 4, 2, 4}));
}

TEST(WeightedOrderTest, AnEpochWithoutSamplesIsRefused) {
  const auto none = WeightedOrder::make(std::vector<double>{1}, 0, 0);

  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("samples_per_epoch=0"));
}

TEST(GivenOrderTest, AnEpochIsWhatWasToldOfItLast) {
  GivenOrder given(10);
  EXPECT_EQ(given.epoch(4), nullptr);
  EXPECT_EQ(given.size(4), std::nullopt);

  ASSERT_TRUE(given.give(4, {.samples = {3, 3, 9}}));
  const auto first = given.epoch(4);
  ASSERT_TRUE(given.give(4, {.first = 7, .samples = {1, 2}}));

  EXPECT_EQ(first->at(2).value, 9u);  // A reader of it goes on.
  EXPECT_EQ(given.size(4), 9u);
  EXPECT_EQ(given.epoch(4)->at(7).value, 1u);
  EXPECT_EQ(given.epoch(4)->first(), 7u);
}

TEST(GivenOrderTest, WhatIsNotToldYetHasTheSizeThatIsExpected) {
  GivenOrder given(10);
  given.expect_size(6);
  ASSERT_TRUE(given.give(1, {.samples = {1}}));

  EXPECT_EQ(given.size(0), 6u);
  EXPECT_EQ(given.size(1), 1u);

  given.forget_before(2);
  EXPECT_EQ(given.epoch(1), nullptr);
  EXPECT_EQ(given.digest(1), std::nullopt);
}

TEST(GivenOrderTest, ASampleThatIsNotThereIsNamed) {
  GivenOrder given(10);

  const auto told = given.give(0, {.first = 5, .samples = {9, 10}});

  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().message(), HasSubstr("sample 10 at position 6"));
  EXPECT_EQ(given.epoch(0), nullptr);
}

TEST(GivenOrderTest, AStepWithoutSamplesIsRefused) {
  GivenOrder given(10);

  EXPECT_FALSE(given.give(0, {.samples = {1, 2}, .ends = {1, 1, 2}}));
  EXPECT_FALSE(given.give(0, {.samples = {1, 2}, .ends = {1}}));
  EXPECT_TRUE(given.give(0, {.samples = {1, 2}, .ends = {1, 2}}));
}

TEST(GivenOrderTest, TheDigestTellsOrdersApart) {
  GivenOrder given(10);
  ASSERT_TRUE(given.give(0, {.samples = {1, 2, 3}}));
  ASSERT_TRUE(given.give(1, {.samples = {1, 3, 2}}));
  ASSERT_TRUE(given.give(2, {.samples = {1, 2, 3}}));

  EXPECT_NE(given.digest(0), given.digest(1));
  EXPECT_EQ(given.digest(0), given.digest(2));
}

RC_GTEST_PROP(DrawnPositionsProperty, AreWhereEachSampleStands, ()) {
  constexpr std::uint64_t kSamples = 20;
  const auto ids =
      *rc::gen::container<Ids>(rc::gen::inRange<std::uint64_t>(0, kSamples));
  const auto first = *rc::gen::inRange<std::uint64_t>(0, 5);
  GivenOrder given(kSamples);
  RC_ASSERT(given.give(0, {.first = first, .samples = ids}));

  const DrawnPositions positions(*given.epoch(0), kSamples);

  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    Ids expected;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == sample) expected.push_back(first + i);
    }
    const auto found = positions.of(SampleId{sample});
    RC_ASSERT(Ids(found.begin(), found.end()) == expected);
  }
}

// For any world size, all ranks together read what one would.
RC_GTEST_PROP(WeightedOrderProperty, RanksReadTheGlobalOrder, ()) {
  const auto world = *rc::gen::inRange<std::uint32_t>(1, 5);
  const auto each = *rc::gen::inRange<std::uint64_t>(1, 4);
  const auto size = *rc::gen::inRange<std::uint64_t>(12, 40);
  const EpochOrder order(3, by(weighted({1, 5, 2}, 1, size)), nullptr, 0);
  Ids read;
  std::vector<Steps> ranks;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    ranks.push_back(*Steps::make({.samples = size,
                                  .global_batch = each * world,
                                  .rank = {rank, world}}));
  }
  for (std::uint64_t step = 0; step < ranks[0].count(); ++step) {
    for (const Steps& of : ranks) {
      for (auto p = of.slice(step).begin; p < of.slice(step).end; ++p) {
        read.push_back(order.at(p).value);
      }
    }
  }
  RC_ASSERT(read == all_drawn(order));
}

NextUseOptions job(std::shared_ptr<const DrawnOrder> drawn,
                   std::uint64_t epoch_size, RankRun ranks = {}) {
  return {.samples = epoch_size,
          .dataset_samples = 10,
          .order = by(std::move(drawn)),
          .global_batch = 4,
          .ranks = ranks,
          .end_epoch = 9,
          .epoch_time = kEpochTime};
}

TEST(NextUseOfDrawnTest, IsTheNextPositionOfTheSampleInThisEpochOrTheNext) {
  auto given = std::make_shared<GivenOrder>(10);
  ASSERT_TRUE(given->give(0, {.samples = {1, 2, 1, 3, 1, 4, 5, 6}}));
  ASSERT_TRUE(given->give(1, {.samples = {9, 9, 2, 9}}));
  auto next = NextUse::make(job(given, 8));
  ASSERT_TRUE(next);

  EXPECT_EQ(next->at_or_after(SampleId{1}, 0, 1), 2u);
  EXPECT_EQ(next->at_or_after(SampleId{1}, 0, 3), 4u);
  EXPECT_EQ(next->at_or_after(SampleId{2}, 0, 2), kEpochTime + 2);
}

TEST(NextUseOfDrawnTest, WhatNobodyKnowsIsNotNever) {
  auto given = std::make_shared<GivenOrder>(10);
  ASSERT_TRUE(given->give(0, {.samples = {1, 2, 1, 3}}));
  NextUseOptions options = job(given, 4);
  auto next = NextUse::make(options);
  ASSERT_TRUE(next);
  // Nothing is known of epoch 1, so: at its end.
  EXPECT_EQ(next->at_or_after(SampleId{3}, 0, 4), kEpochTime + 3);

  options.end_epoch = 1;  // And there is none.
  auto last = NextUse::make(options);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->at_or_after(SampleId{3}, 0, 4), kNever);
}

TEST(NextUseOfDrawnTest, CountsTheReadsOfTheseRanksAlone) {
  auto given = std::make_shared<GivenOrder>(10);
  ASSERT_TRUE(given->give(0, {.samples = {7, 7, 0, 0, 1, 1, 7, 2}}));
  auto first = NextUse::make(job(given, 8, {.count = 1, .world_size = 2}));
  auto second =
      NextUse::make(job(given, 8, {.first = 1, .count = 1, .world_size = 2}));
  ASSERT_TRUE(first && second);

  EXPECT_EQ(first->at_or_after(SampleId{7}, 0, 1), 1u);
  EXPECT_EQ(second->at_or_after(SampleId{7}, 0, 1), 6u);
}

// Rows of 2, 1, 3 and 2 samples; two make a step, for two ranks.
TEST(NextUseOfDrawnTest, GoesByTheRowsOfRanksAndByTheDeal) {
  const GivenEpoch rows{.samples = {7, 0, 1, 2, 3, 4, 7, 5},
                        .ends = {2, 3, 6, 8},
                        .rows_of_a_step = 2};
  GivenEpoch dealt = rows;
  dealt.dealt = DealtSteps{
      .ranks = 2, .positions = {2, 0, 1, 6, 7, 3, 4, 5}, .ends = {1, 3, 5, 8}};
  const auto reads = [](const GivenEpoch& given, std::uint64_t epoch) {
    auto order = std::make_shared<GivenOrder>(10);
    EXPECT_TRUE(order->give(epoch, given));
    std::vector<AccessTime> found;
    for (const std::uint64_t sample : {7, 2}) {
      for (const std::uint32_t rank : {0, 1}) {
        NextUse next = *NextUse::make(
            job(order, 8, {.first = rank, .count = 1, .world_size = 2}));
        found.push_back(next.at_or_after(SampleId{sample}, epoch, 0));
      }
    }
    return found;
  };

  EXPECT_EQ(reads(rows, 0), (std::vector<AccessTime>{0, 6, 3, kEpochTime + 7}));
  EXPECT_EQ(reads(dealt, 0),
            (std::vector<AccessTime>{6, 0, kEpochTime + 7, 3}));
  EXPECT_EQ(reads(dealt, 1),
            (std::vector<AccessTime>{kEpochTime + 6, kEpochTime,
                                     2 * kEpochTime + 7, kEpochTime + 3}));
}

// Four rows of 3, 2, 2 and 2 samples make one step, and 9 round up to 12.
TEST(NextUseOfDrawnTest, AStepOfRowsThatRoundsUpPastTheEpochIsNotDropped) {
  auto given = std::make_shared<GivenOrder>(10);
  ASSERT_TRUE(given->give(0, {.samples = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                              .ends = {3, 5, 7, 9},
                              .rows_of_a_step = 4}));
  NextUseOptions options =
      job(given, 9, {.first = 1, .count = 1, .world_size = 4});
  options.global_batch = 12;
  options.tail = Tail::kDrop;
  auto next = NextUse::make(options);
  ASSERT_TRUE(next) << next.error().message();

  EXPECT_EQ(next->at_or_after(SampleId{5}, 0, 0), 4u);
  EXPECT_EQ(next->at_or_after(SampleId{6}, 0, 0), kEpochTime + 8);
}

TEST(StepsOfUnequalSizeTest, EndWhereTheyAreSaidTo) {
  const auto ends = std::make_shared<const Ids>(Ids{3, 4, 9});
  const auto steps =
      Steps::make({.samples = 9, .global_batch = 5}, {.ends = ends});
  ASSERT_TRUE(steps);

  EXPECT_EQ(steps->count(), 3u);
  EXPECT_EQ(steps->slice(0), (StepSlice{0, 3}));
  EXPECT_EQ(steps->slice(2), (StepSlice{4, 9}));
  EXPECT_EQ(steps->position_after(1), 4u);
  EXPECT_TRUE(steps->is_whole(1));
}

TEST(StepsOfUnequalSizeTest, GoOnAtAnEnd) {
  const auto ends = std::make_shared<const Ids>(Ids{3, 4, 9});
  const auto from = [&](std::uint64_t start) {
    return Steps::make({.samples = 9, .start = start, .global_batch = 5},
                       {.ends = ends});
  };

  ASSERT_TRUE(from(4));
  EXPECT_EQ(from(4)->count(), 1u);
  EXPECT_EQ(from(4)->slice(0), (StepSlice{4, 9}));
  EXPECT_EQ(from(9)->count(), 0u);
  EXPECT_FALSE(from(5));
  EXPECT_FALSE(Steps::make({.samples = 9, .global_batch = 4, .rank = {0, 2}},
                           {.ends = ends}));
}

TEST(StepsOfRowsTest, RanksDivideTheRowsOfAStep) {
  // Rows of 3, 1, 5, 2, 2, 4 and 1 samples; four make a step.
  const StepRows rows = {
      .ends = std::make_shared<const Ids>(Ids{3, 4, 9, 11, 13, 17, 18}),
      .of_a_step = 4};
  const auto steps_of = [&](Rank rank, std::uint64_t start, Tail tail) {
    return *Steps::make({.samples = 18,
                         .start = start,
                         .global_batch = 1,
                         .rank = rank,
                         .tail = tail},
                        rows);
  };
  const Steps second = steps_of({1, 2}, 0, Tail::kKeep);

  EXPECT_EQ(second.count(), 2U);
  EXPECT_EQ(steps_of({0, 2}, 0, Tail::kKeep).slice(0), (StepSlice{0, 4}));
  EXPECT_EQ(second.slice(0), (StepSlice{4, 11}));
  EXPECT_EQ(second.all_ranks(0), (StepSlice{0, 11}));
  EXPECT_EQ(second.position_after(0), 11U);
  EXPECT_TRUE(second.is_whole(0));
  // Three rows are left: the first rank gets two.
  EXPECT_EQ(steps_of({0, 2}, 0, Tail::kKeep).slice(1), (StepSlice{11, 17}));
  EXPECT_EQ(second.slice(1), (StepSlice{17, 18}));
  EXPECT_FALSE(second.is_whole(1));
  EXPECT_EQ(second.step_of(16), 1U);
  EXPECT_TRUE(second.has_some_for_all(1));
  EXPECT_FALSE(steps_of({0, 4}, 0, Tail::kKeep).has_some_for_all(1));
  EXPECT_EQ(steps_of({0, 2}, 0, Tail::kDrop).count(), 1U);
  // Another number of ranks goes on from the end of a step.
  EXPECT_EQ(steps_of({0, 1}, 11, Tail::kKeep).slice(0), (StepSlice{11, 18}));
  EXPECT_EQ(steps_of({3, 4}, 4, Tail::kDrop).slice(0), (StepSlice{13, 17}));
}

TEST(StepsOfRowsTest, RefusesRowsThatDoNotDivide) {
  const auto ends = std::make_shared<const Ids>(Ids{3, 4, 9});
  const auto make = [&](std::uint64_t of_a_step, Rank rank, Tail tail) {
    return Steps::make({.samples = 9, .rank = rank, .tail = tail},
                       {.ends = ends, .of_a_step = of_a_step});
  };

  EXPECT_TRUE(make(2, {0, 2}, Tail::kDrop));
  EXPECT_FALSE(make(3, {0, 2}, Tail::kDrop));
  EXPECT_FALSE(make(4, {0, 2}, Tail::kDrop));  // It would drop them all.
  EXPECT_FALSE(make(0, {0, 1}, Tail::kDrop));
}

/// Rows of 2, 1, 3 and 2 samples; two make a step, dealt to two ranks.
StepRows dealt_rows() {
  return {.ends = std::make_shared<const Ids>(Ids{2, 3, 6, 8}),
          .of_a_step = 2,
          .dealt = std::make_shared<const DealtSteps>(
              DealtSteps{.ranks = 2,
                         .positions = {2, 0, 1, 6, 7, 3, 4, 5},
                         .ends = {1, 3, 5, 8}})};
}

TEST(DealtStepsTest, ARankHasWhatIsDealtToIt) {
  const auto of = [&](Rank rank, std::uint64_t start) {
    return *Steps::make({.samples = 8, .start = start, .rank = rank},
                        dealt_rows());
  };

  EXPECT_EQ(of({0, 2}, 0).positions(0), (Ids{2}));
  EXPECT_EQ(of({1, 2}, 0).positions(0), (Ids{0, 1}));
  EXPECT_EQ(of({0, 2}, 0).size(1), 2U);
  EXPECT_EQ(of({1, 2}, 0).positions(1), (Ids{3, 4, 5}));
  EXPECT_EQ(of({1, 2}, 3).positions(0), (Ids{3, 4, 5}));  // A later start.
  EXPECT_TRUE(of({1, 2}, 0).has_some_for_all(1));
}

TEST(DealtStepsTest, AStepThatIsNotDealtIsRefused) {
  EXPECT_FALSE(Steps::make({.samples = 8, .start = 2, .rank = {0, 2}},
                           dealt_rows()));  // Steps begin elsewhere.
  EXPECT_FALSE(Steps::make({.samples = 8, .rank = {0, 1}}, dealt_rows()));
  StepRows larger = dealt_rows();
  larger.of_a_step = 4;
  EXPECT_FALSE(Steps::make({.samples = 8, .rank = {0, 2}}, larger));
}

TEST(DealtStepsTest, ADealThatLosesASampleIsRefused) {
  const DealtSteps good = *dealt_rows().dealt;
  EXPECT_TRUE(good.check());
  for (const std::uint64_t wrong : Ids{0, 1, 3, 8}) {  // In the place of 2.
    DealtSteps bad = good;
    bad.positions[0] = wrong;
    EXPECT_FALSE(bad.check()) << wrong;
  }
  DealtSteps bad = good;
  bad.ends = {1, 3, 5, 9};
  EXPECT_FALSE(bad.check());
  bad.ends = {1, 3, 5};
  EXPECT_FALSE(bad.check());
  bad.ends = {3, 1, 5, 8};
  EXPECT_FALSE(bad.check());

  GivenOrder order(8);
  GivenEpoch given{.samples = Ids{0, 1, 2, 3, 4, 5, 6, 7},
                   .ends = Ids{2, 3, 6, 8},
                   .rows_of_a_step = 2,
                   .dealt = good};
  EXPECT_TRUE(order.give(0, given));
  given.dealt = bad;
  EXPECT_FALSE(order.give(0, given));
}

}  // namespace
}  // namespace leat
