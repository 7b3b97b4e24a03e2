#include "leat/plan/dealing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace leat {
namespace {

Steps dealt_steps(std::uint64_t samples, std::uint64_t batch, Rank rank,
                  Tail tail = Tail::kKeep, std::uint64_t start = 0) {
  return *Steps::make({.samples = samples,
                       .start = start,
                       .global_batch = batch,
                       .rank = rank,
                       .tail = tail});
}

// However it is dealt, a step trains on the same samples, and each rank on as
// many of them as without.
RC_GTEST_PROP(DealingProperty, EveryStepKeepsItsPositionsAndEveryRankItsCount,
              ()) {
  const auto samples = *rc::gen::inRange<std::uint64_t>(1, 400);
  const auto world = *rc::gen::inRange<std::uint32_t>(1, 7);
  const auto batch = world * *rc::gen::inRange<std::uint64_t>(1, 20);
  const auto start = *rc::gen::inRange<std::uint64_t>(0, samples);
  const auto tail = *rc::gen::element(Tail::kKeep, Tail::kPad);
  const EpochOrder order(
      samples, {.seed = *rc::gen::arbitrary<std::uint64_t>()}, nullptr, 0);
  const Steps first = dealt_steps(samples, batch, {0, world}, tail, start);

  for (std::uint64_t k = 0; k < first.count(); ++k) {
    std::vector<std::uint64_t> got;
    std::vector<std::uint64_t> expected;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const Steps steps =
          dealt_steps(samples, batch, {rank, world}, tail, start);
      const StepSlice slice = steps.slice(k);
      const auto mine = positions_at_home(steps, k, order);
      RC_ASSERT(mine.size() == slice.size());
      RC_ASSERT(std::ranges::is_sorted(mine));
      got.insert(got.end(), mine.begin(), mine.end());
      for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
        expected.push_back(p);
      }
    }
    std::ranges::sort(got);
    RC_ASSERT(got == expected);
  }
}

TEST(DealingTest, MostSamplesAreReadAtHomeInEveryEpoch) {
  constexpr std::uint64_t kSamples = 12'000;
  constexpr std::uint64_t kBatch = 1200;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const EpochOrder order(kSamples, {}, nullptr, epoch);
    const Steps steps = dealt_steps(kSamples, kBatch, {2, 3});
    std::uint64_t at_home = 0;
    for (std::uint64_t k = 0; k < steps.count(); ++k) {
      for (const std::uint64_t p : positions_at_home(steps, k, order)) {
        if (home_of(order.at(p), 3) == 2) ++at_home;
      }
    }
    // All but what 1,200 draws from three are uneven by.
    EXPECT_GT(at_home, 4000u * 94 / 100);
    EXPECT_LE(at_home, 4000u);
  }
}

TEST(DealingTest, HomesAreEven) {
  std::vector<std::uint64_t> samples(5);
  for (std::uint64_t i = 0; i < 10'000; ++i) ++samples[home_of({i}, 5)];
  for (const std::uint64_t count : samples) EXPECT_NEAR(count, 2000, 200);
}

}  // namespace
}  // namespace leat
