// How far a loader plans ahead of training, counted in requests.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/loader/world.h"

namespace leat {
namespace {

constexpr std::uint64_t kBatch = 8;
constexpr std::size_t kInFlight = 16;
constexpr std::uint64_t kLeast = 2 * kInFlight;

LoaderOptions looking_ahead() {
  LoaderOptions options = usual_options();
  options.global_batch_size = kBatch;
  options.max_in_flight = kInFlight;
  return options;
}

/// Gives a planner without a limit more than the time it needs.
void peek_for_long(Loader& loader) {
  for (int i = 0; i < 500; ++i) {
    (void)must(loader.peek_within(std::chrono::hours(1)));
  }
}

TEST(LookaheadLoaderTest, AsksForTwoWindowsAndNoMoreBeforeTrainingHasBegun) {
  World world;
  world.serve();
  auto loader = must(world.load(kBucketUrl, looking_ahead()));
  (void)must(loader->begin());
  std::uint64_t gets = 0;
  // A sample in 17 is empty and is not asked for.
  while (gets < kLeast - 4) {
    (void)must(loader->peek_within(std::chrono::hours(1)));
    gets = loader->stats().back().gets;
  }

  peek_for_long(*loader);

  EXPECT_LE(loader->stats().back().gets, kLeast);
  EXPECT_EQ(loader->stats().back().lookahead, kLeast);
}

TEST(LookaheadLoaderTest, IsNeverFurtherAheadThanItSays) {
  World world;
  world.serve();
  auto loader = must(world.load(kBucketUrl, looking_ahead()));
  for (int epoch = 0; epoch < 3; ++epoch) {
    const Loader::Iteration iteration = must(loader->begin());
    std::uint64_t most = 0;
    while (true) {
      Loader::Next next = must(loader->next(iteration));
      if (next.is_end()) break;
      const EpochStats now = loader->stats().back();
      EXPECT_GE(now.lookahead, kLeast);
      most = std::max(most, now.lookahead);
      EXPECT_LE(now.gets, now.samples + most);
    }
    EXPECT_EQ(loader->stats().back().samples, World::kSamples);
  }
}

// Else a batch could never become whole.
TEST(LookaheadLoaderTest, HoldsABatchThatIsLargerThanTheWindow) {
  World world;
  LoaderOptions options = looking_ahead();
  options.global_batch_size = 120;
  options.max_in_flight = 1;
  auto loader = must(world.load(world.folder() + "/train", options));

  const Seen seen = must(run_epoch(*loader));

  EXPECT_EQ(seen.batches.size(), 2u);
  EXPECT_GE(seen.stats.lookahead, 240u);
}

LoaderOptions of_given_rows() {
  LoaderOptions options = usual_options();
  options.is_given = true;
  options.drop_last = false;
  options.max_in_flight = 1;
  return options;
}

/// All samples in their order, cut into rows that end there.
GivenEpoch rows(std::vector<std::uint64_t> ends, std::uint64_t of_a_step) {
  GivenEpoch given{.samples = std::vector<std::uint64_t>(World::kSamples),
                   .ends = std::move(ends),
                   .rows_of_a_step = of_a_step};
  std::iota(given.samples.begin(), given.samples.end(), 0);
  return given;
}

// The share of a rank in a step of 208 samples would be 26.
TEST(LookaheadLoaderTest, EndsABatchThatHasMoreThanARanksShareOfItsStep) {
  World world;
  LoaderOptions options = of_given_rows();
  options.global_batch_size = 8;
  options.rank = Rank{.rank = 0, .world_size = 8};
  auto loader = must(world.load(world.folder() + "/train", options));
  std::vector<std::uint64_t> ends(40);  // One of 201 samples, others of one.
  std::iota(ends.begin(), ends.end(), 201);
  must(loader->give_order(0, rows(ends, 8), /*starts=*/false));
  const Loader::Iteration iteration = must(loader->begin());

  Loader::Next next =
      must(loader->next_within(iteration, std::chrono::minutes(1)));

  ASSERT_FALSE(next.is_not_yet());
  EXPECT_EQ(next.batch().ids.size(), 201u);
  EXPECT_LT(loader->stats().back().lookahead, 201u);
}

// A batch of 50 samples is one row, and a state counts rows.
TEST(LookaheadLoaderTest, AStateLeavesStepsOfRowsTheirSamples) {
  World world;
  LoaderOptions options = of_given_rows();
  options.global_batch_size = 0;
  options.batch_size = 1;
  auto loader = must(world.load(world.folder() + "/train", options));
  must(loader->give_order(0, rows({50, 100, 150, 200, 240}, 1),
                          /*starts=*/false));

  must(loader->load_state(loader->state()));

  const Loader::Iteration iteration = must(loader->begin());
  EXPECT_EQ(loader->stats().back().lookahead, 100u);
  Loader::Next next =
      must(loader->next_within(iteration, std::chrono::minutes(1)));
  ASSERT_FALSE(next.is_not_yet());
  EXPECT_EQ(next.batch().ids.size(), 50u);
}

}  // namespace
}  // namespace leat
