#include "leat/plan/lookahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace leat {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kBatch = 32;

Lookahead::Taken on_time(Nanoseconds fetch, Nanoseconds busy) {
  return {.samples = kBatch, .fetch = fetch, .busy = busy};
}

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
      const Nanoseconds wait = std::max(ready, now_) - now_;
      if (wait > Nanoseconds{0}) ++late;
      now_ += wait;
      lookahead_.took({.samples = kBatch,
                       .fetch = fetch,
                       .busy = compute,
                       .wait = wait,
                       .arrival = wait > Nanoseconds{0}
                                      ? Lookahead::Arrival::kLate
                                      : Lookahead::Arrival::kOnTime});
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
    lookahead.took(on_time(milliseconds(100), milliseconds(kBatch)));
  }

  EXPECT_EQ(lookahead.samples(), 100 + kBatch);
}

TEST(LookaheadTest, TheSlowestOfTheLastBatchesCounts) {
  Lookahead lookahead(kBatch, 0);
  lookahead.took(on_time(milliseconds(900), milliseconds(kBatch)));
  for (int i = 0; i < 64; ++i) {
    lookahead.took(on_time(milliseconds(100), milliseconds(kBatch)));
  }
  EXPECT_EQ(lookahead.samples(), 900 + kBatch);

  for (int i = 0; i < 64; ++i) {
    lookahead.took(on_time(milliseconds(100), milliseconds(kBatch)));
  }
  EXPECT_EQ(lookahead.samples(), 100 + kBatch);
}

TEST(LookaheadTest, IsNeverLessThanTwoBatchesNorThanWasAskedFor) {
  Lookahead two(kBatch, 0);
  Lookahead asked(kBatch, 1000);
  for (Lookahead* lookahead : {&two, &asked}) {
    lookahead->took(on_time(microseconds(1), std::chrono::hours(1)));
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

// A loop that does nothing else is always waiting. It is as fast as its batches
// come, so it needs what comes in a latency, and some more if that varies.
TEST(LookaheadTest, ALoopThatOnlyReadsIsNotInfinitelyFast) {
  Lookahead lookahead(kBatch, 0);
  for (int i = 0; i < 100; ++i) {
    lookahead.took({.samples = kBatch,
                    .fetch = milliseconds(50),
                    .wait = milliseconds(5),
                    .arrival = Lookahead::Arrival::kLate});
  }

  EXPECT_EQ(lookahead.samples(), 64 * 50 / 5 * kBatch + kBatch);
}

TEST(LookaheadTest, WhereMoreCannotHelpTheLeastIsEnough) {
  Lookahead lookahead(kBatch, 256);
  const auto take = [&](Lookahead::Arrival arrival) {
    lookahead.took({.samples = kBatch,
                    .fetch = milliseconds(500),
                    .wait = milliseconds(5),
                    .arrival = arrival});
  };
  for (int i = 0; i < 10; ++i) take(Lookahead::Arrival::kLate);
  EXPECT_GT(lookahead.samples(), 3000u);

  take(Lookahead::Arrival::kBound);
  EXPECT_EQ(lookahead.samples(), 256u);

  take(Lookahead::Arrival::kLate);
  EXPECT_GT(lookahead.samples(), 3000u);
}

TEST(LookaheadTest, OneLateReadIsWaitedOutThoughAllRequestsAreInUse) {
  for (const auto usual : {milliseconds(150), milliseconds(900)}) {
    Lookahead lookahead(32, 128);
    for (int i = 0; i < 3; ++i) {
      lookahead.took({.samples = 32,
                      .fetch = milliseconds(1200),
                      .usual = usual,
                      .busy = milliseconds(80),
                      .arrival = Lookahead::Arrival::kBound});
    }
    // As long as it took, and no more: more requests wait for one another.
    EXPECT_EQ(lookahead.samples(), usual == milliseconds(150) ? 512u : 128u);
  }
}

}  // namespace
}  // namespace leat
