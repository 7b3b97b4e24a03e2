#include "leat/plan/ready_first.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "leat/base/hash.h"

namespace leat {
namespace {

using Positions = std::vector<std::uint64_t>;

Steps ready_steps(std::uint64_t samples, std::uint64_t start,
                  std::uint64_t batch, Rank rank = {},
                  Tail tail = Tail::kKeep) {
  return *Steps::make({.samples = samples,
                       .start = start,
                       .global_batch = batch,
                       .rank = rank,
                       .tail = tail});
}

ReadyFirst ready_first_of(const Steps& steps, std::uint64_t samples,
                          std::uint64_t window, const Positions& behind = {}) {
  Result<ReadyFirst> made = ReadyFirst::make(steps, samples, window, behind);
  EXPECT_TRUE(made) << made.error().message();
  return *std::move(made);
}

bool never(std::uint64_t) { return false; }

TEST(ReadyFirstTest, KeepsTheOrderWhereNothingIsReady) {
  ReadyFirst first = ready_first_of(ready_steps(10, 0, 4), 10, 8);

  EXPECT_EQ(first.next_step(never, never), (Positions{0, 1, 2, 3}));
  EXPECT_EQ(first.next_step(never, never), (Positions{4, 5, 6, 7}));
  EXPECT_EQ(first.next_step(never, never), (Positions{8, 9}));
  EXPECT_TRUE(first.left_behind().empty());
}

TEST(ReadyFirstTest, TakesWhatIsReadyWithinTheWindowFirst) {
  ReadyFirst first = ready_first_of(ready_steps(12, 0, 4), 12, 6);
  const auto is_odd = [](std::uint64_t p) { return p % 2 == 1; };

  // 7 is past the window of 0 to 5.
  EXPECT_EQ(first.next_step(is_odd, never), (Positions{1, 3, 5, 0}));
  EXPECT_EQ(first.left_behind(), (Positions{2, 4}));
  // The window is 2, 4, 6 and 7 now: it begins with the positions that were
  // passed over.
  EXPECT_EQ(first.next_step(is_odd, never), (Positions{7, 2, 4, 6}));
  EXPECT_TRUE(first.left_behind().empty());
  EXPECT_EQ(first.next_step(is_odd, never), (Positions{9, 11, 8, 10}));
  EXPECT_TRUE(first.left_behind().empty());
}

TEST(ReadyFirstTest, PassesOverWhatSomebodyElseMakesReady) {
  ReadyFirst first = ready_first_of(ready_steps(12, 0, 4), 12, 6);
  const auto is_five = [](std::uint64_t p) { return p == 5; };
  const auto is_even = [](std::uint64_t p) { return p % 2 == 0; };

  EXPECT_EQ(first.next_step(is_five, is_even), (Positions{5, 1, 3, 0}));
  // Unless there is nothing else.
  EXPECT_EQ(first.next_step(never, is_even), (Positions{7, 2, 4, 6}));
  EXPECT_TRUE(first.left_behind().empty());
}

TEST(ReadyFirstTest, GoesOnFromWhatWasLeftBehind) {
  ReadyFirst first = ready_first_of(ready_steps(12, 4, 4), 12, 6, {2, 4});

  EXPECT_EQ(first.next_step(never, never), (Positions{2, 4, 6, 7}));
  EXPECT_EQ(first.next_step(never, never), (Positions{8, 9, 10, 11}));
}

TEST(ReadyFirstTest, LeavesPaddingWhereItIs) {
  const auto is_late = [](std::uint64_t p) { return p >= 3; };
  ReadyFirst first = ready_first_of(ready_steps(6, 0, 4, {}, Tail::kPad), 6, 6);

  EXPECT_EQ(first.next_step(is_late, never), (Positions{3, 4, 5, 0}));
  EXPECT_EQ(first.next_step(is_late, never), (Positions{1, 2, 6, 7}));
}

TEST(ReadyFirstTest, RefusesWhatCouldNotHaveBeenLeftBehind) {
  const Steps steps = ready_steps(12, 4, 4);
  for (const Positions& bad :
       {Positions{4, 2}, Positions{2, 2}, Positions{2, 6}, Positions{13},
        Positions{0, 1, 2, 3, 4, 5, 6, 7, 8}}) {
    const Result<ReadyFirst> made = ReadyFirst::make(steps, 12, 6, bad);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::kInvalidArgument);
  }
}

// Holds for any readiness and any break: each rank gets as many as in its
// order, each of its positions once, and none is overtaken by more than the
// window.
RC_GTEST_PROP(ReadyFirstTest, IsAPermutationOfEachRanksPositions, ()) {
  const auto world = *rc::gen::inRange<std::uint32_t>(1, 4);
  const auto batch = world * *rc::gen::inRange<std::uint64_t>(1, 6);
  const auto samples = batch + *rc::gen::inRange<std::uint64_t>(0, 60);
  const auto window = *rc::gen::inRange<std::uint64_t>(0, 40);
  const auto tail = *rc::gen::element(Tail::kDrop, Tail::kKeep, Tail::kPad);
  const auto salt = *rc::gen::arbitrary<std::uint64_t>();
  const auto share = *rc::gen::inRange<std::uint64_t>(0, 5);
  const auto is_ready = [&](std::uint64_t p) {
    return mix64(p ^ salt) % 4 < share;
  };
  const auto is_coming = [&](std::uint64_t p) {
    return mix64(p + salt) % 4 < share;
  };
  for (std::uint32_t r = 0; r < world; ++r) {
    const Rank rank{.rank = r, .world_size = world};
    const Steps all = ready_steps(samples, 0, batch, rank, tail);
    Positions plain;
    for (std::uint64_t step = 0; step < all.count(); ++step) {
      const StepSlice slice = all.slice(step);
      for (std::uint64_t p = slice.begin; p < slice.end; ++p) {
        plain.push_back(p);
      }
    }
    Positions dealt;
    Positions behind;
    std::uint64_t done = 0;
    int runs = 0;
    while (done < all.count()) {
      // Broken off after one or more steps, and taken up from a state.
      const std::uint64_t start = done == 0 ? 0 : all.position_after(done - 1);
      const Steps rest = ready_steps(samples, start, batch, rank, tail);
      ReadyFirst first = ready_first_of(rest, samples, window, behind);
      const auto run =
          *rc::gen::inRange<std::uint64_t>(1, all.count() - done + 1);
      for (std::uint64_t i = 0; i < run; ++i, ++done) {
        const Positions now = first.next_step(is_ready, is_coming);
        RC_ASSERT(now.size() == all.slice(done).size());
        dealt.insert(dealt.end(), now.begin(), now.end());
      }
      behind = first.left_behind();
      ++runs;
      RC_ASSERT(behind.size() <
                std::max<std::uint64_t>(window, batch / world) + 1);
    }
    RC_ASSERT(behind.empty());
    Positions sorted = dealt;
    std::ranges::sort(sorted);
    RC_ASSERT(sorted == plain);
    // How many come before it that its order has after it; more where a state
    // was gone on from on the way.
    for (std::size_t i = 0; runs == 1 && i < dealt.size(); ++i) {
      const auto ahead =
          std::count_if(dealt.begin(), dealt.begin() + static_cast<long>(i),
                        [&](std::uint64_t p) { return p > dealt[i]; });
      RC_ASSERT(static_cast<std::uint64_t>(ahead) <
                std::max<std::uint64_t>(window, batch / world));
    }
  }
}

}  // namespace
}  // namespace leat
