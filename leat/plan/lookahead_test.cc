#include "leat/plan/lookahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace leat {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kBatch = 32;

/// Training and a store in virtual time: replies come `latency` later, for any
/// amount.
class World {
 public:
  explicit World(Lookahead& lookahead) : lookahead_(lookahead) { plan(); }

  /// Takes `batches`; counts those that training waited for, and remembers the
  /// most that it was ahead.
  void train(int batches) {
    late = 0;
    most_ahead = 0;
    for (int i = 0; i < batches; ++i) {
      now_ += compute;
      Nanoseconds ready{0};
      Nanoseconds fetch{0};
      for (std::uint64_t n = 0; n < kBatch; ++n) {
        ready = std::max(ready, asked_.front().ready);
        fetch = std::max(fetch, asked_.front().ready - asked_.front().planned);
        asked_.pop_front();
      }
      const bool is_late = ready > now_;
      if (is_late) ++late;
      now_ = std::max(now_, ready);
      lookahead_.took(kBatch, fetch, compute, is_late);
      plan();
      most_ahead = std::max<std::uint64_t>(most_ahead, asked_.size());
    }
  }

  Nanoseconds latency = milliseconds(100);
  Nanoseconds compute = milliseconds(32);
  int late = 0;
  std::uint64_t most_ahead = 0;

 private:
  struct Asked {
    Nanoseconds planned;
    Nanoseconds ready;
  };
  void plan() {
    while (asked_.size() < lookahead_.samples()) {
      asked_.push_back({now_, now_ + latency});
    }
  }

  Lookahead& lookahead_;
  Nanoseconds now_{0};
  std::deque<Asked> asked_;
};

TEST(LookaheadTest, IsLatencyTimesRateAndABatch) {
  Lookahead lookahead(kBatch, 0);
  // A sample a millisecond, and each is 100 ms away.
  for (int i = 0; i < 10; ++i) {
    lookahead.took(kBatch, milliseconds(100), milliseconds(kBatch), false);
  }

  EXPECT_EQ(lookahead.samples(), 100 + kBatch);
}

TEST(LookaheadTest, TheSlowestOfTheLastBatchesCounts) {
  Lookahead lookahead(kBatch, 0);
  lookahead.took(kBatch, milliseconds(900), milliseconds(kBatch), false);
  for (int i = 0; i < 64; ++i) {
    lookahead.took(kBatch, milliseconds(100), milliseconds(kBatch), false);
  }
  EXPECT_EQ(lookahead.samples(), 900 + kBatch);

  for (int i = 0; i < 64; ++i) {
    lookahead.took(kBatch, milliseconds(100), milliseconds(kBatch), false);
  }
  EXPECT_EQ(lookahead.samples(), 100 + kBatch);
}

TEST(LookaheadTest, IsNeverLessThanTwoBatchesNorThanWasAskedFor) {
  Lookahead two(kBatch, 0);
  Lookahead asked(kBatch, 1000);
  for (Lookahead* lookahead : {&two, &asked}) {
    lookahead->took(kBatch, microseconds(1), std::chrono::hours(1), false);
  }

  EXPECT_EQ(two.samples(), 2 * kBatch);
  EXPECT_EQ(asked.samples(), 1000u);
}

TEST(LookaheadTest, TrainingWaitsForTheFirstBatchesOnly) {
  Lookahead lookahead(kBatch, 0);
  World world(lookahead);

  world.train(10);
  EXPECT_GT(world.late, 0);
  world.train(1000);
  EXPECT_EQ(world.late, 0);

  world.train(200);  // The lookahead that was doubled at the start is halved by
                     // now.
  EXPECT_EQ(world.late, 0);
  EXPECT_LE(world.most_ahead, 100 + 2 * kBatch);
}

TEST(LookaheadTest, FollowsAStoreThatSlowsDownAndRecovers) {
  Lookahead lookahead(kBatch, 0);
  World world(lookahead);
  world.train(1000);
  const std::uint64_t before = world.most_ahead;

  world.latency = milliseconds(1000);
  world.train(30);
  EXPECT_GT(world.late, 0);
  world.train(1000);
  EXPECT_EQ(world.late, 0);
  EXPECT_GE(world.most_ahead, 1000u);

  world.latency = milliseconds(100);
  world.train(1000);
  world.train(200);
  EXPECT_EQ(world.late, 0);
  EXPECT_LE(world.most_ahead, before);
}

TEST(LookaheadTest, FollowsTrainingThatSpeedsUpAndSlowsDown) {
  Lookahead lookahead(kBatch, 0);
  World world(lookahead);
  world.compute = milliseconds(320);
  world.train(1000);
  const std::uint64_t slow = world.most_ahead;

  world.compute = milliseconds(8);
  world.train(100);
  world.train(1000);
  EXPECT_EQ(world.late, 0);
  EXPECT_GE(world.most_ahead, 400u);  // 100 ms at 4 a millisecond.

  world.compute = milliseconds(320);
  world.train(1000);
  world.train(200);
  EXPECT_EQ(world.late, 0);
  EXPECT_EQ(world.most_ahead, slow);
}

// A loop that does nothing else is always waiting: memory is the only limit.
TEST(LookaheadTest, ALoopThatOnlyReadsHasNoLimit) {
  Lookahead lookahead(kBatch, 0);
  for (int i = 0; i < 100; ++i) {
    lookahead.took(kBatch, milliseconds(50), Nanoseconds{0}, true);
  }

  EXPECT_GT(lookahead.samples(), std::uint64_t{1} << 39);
}

}  // namespace
}  // namespace leat
