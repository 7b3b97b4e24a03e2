#include "leat/engine/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr RankLimits kShare{.local_ranks = 2,
                            .in_flight = 32,
                            .in_flight_was_asked = true,
                            .threads = 2,
                            .cores = 6,
                            .memory_bytes = 64 << 20};

/// A second of training after a first batch that took as long; `wait` of it
/// went to `cause`.
EpochStats waited(Stall cause, milliseconds wait) {
  EpochStats stats;
  stats.first_batch = milliseconds(1000);
  stats.first_stalls[Stall::kStorage] = milliseconds(1000);
  stats.stalls[Stall::kStorage] = milliseconds(1000);
  stats.stalls[cause] += wait;
  stats.elapsed = milliseconds(2000);
  stats.late_batches = 10;
  stats.late_with_full_window = 9;
  return stats;
}

TEST(VerdictTest, LeavesTheFirstBatchOut) {
  EXPECT_EQ(verdict_of(waited(Stall::kStorage, milliseconds(9)), kShare),
            "waiting under 1 %");
  EXPECT_EQ(verdict_of({}, kShare), "waiting under 1 %");
}

TEST(VerdictTest, SaysWhichWindowWouldDo) {
  EXPECT_EQ(verdict_of(waited(Stall::kStorage, milliseconds(500)), kShare),
            "waiting 50 %: storage, window capped at 64 by max_in_flight=; 128 "
            "would do");
  RankLimits share = kShare;
  share.in_flight_was_asked = false;
  EXPECT_EQ(verdict_of(waited(Stall::kStorage, milliseconds(140)), share),
            "waiting 14 %: storage, window capped at 64 by max_in_flight's "
            "default; 80 would do");
  EXPECT_THAT(verdict_of(waited(Stall::kStorage, milliseconds(990)), kShare),
              AllOf(StartsWith("waiting 99 %"), HasSubstr("cache=")));
}

TEST(VerdictTest, DoesNotBlameAWindowThatWasNotFull) {
  EpochStats stats = waited(Stall::kStorage, milliseconds(500));
  stats.late_with_full_window = 4;

  EXPECT_THAT(verdict_of(stats, kShare), HasSubstr("bandwidth"));
}

TEST(VerdictTest, CountsThreadsAgainstCores) {
  EXPECT_EQ(verdict_of(waited(Stall::kDecode, milliseconds(300)), kShare),
            "waiting 30 %: decode, on all 4 threads; threads=6 would do");
  EXPECT_EQ(verdict_of(waited(Stall::kTransform, milliseconds(500)), kShare),
            "waiting 50 %: ops after the decoder, on all 4 threads; more cores "
            "than these 6 are needed: 8");
  EXPECT_THAT(verdict_of(waited(Stall::kDecode, milliseconds(990)), kShare),
              EndsWith("more cores than these 6 are needed"));
}

TEST(VerdictTest, NamesTheLockThatThreadsWaitFor) {
  EpochStats stats = waited(Stall::kTransform, milliseconds(500));
  stats.threads = {.busy = milliseconds(4000),
                   .cpu = milliseconds(2000),
                   .locked = milliseconds(1800)};
  EXPECT_THAT(verdict_of(stats, kShare),
              AllOf(StartsWith("waiting 50 %: functions of yours in Python"),
                    HasSubstr("2 threads waited 45 %"), HasSubstr("(GIL)")));

  // A function that releases the lock while it computes has more than one core.
  stats.threads.cpu = milliseconds(3900);
  EXPECT_THAT(verdict_of(stats, kShare), HasSubstr("on all 4 threads"));
  // Waiting for a file is no lock.
  stats.threads.cpu = milliseconds(1000);
  stats.threads.locked = milliseconds(100);
  EXPECT_THAT(verdict_of(stats, kShare), HasSubstr("on all 4 threads"));
}

TEST(VerdictTest, NamesEveryCauseAndItsRemedy) {
  EpochStats throttled = waited(Stall::kThrottled, milliseconds(300));
  throttled.retried = 7;
  throttled.gets = 50;
  EXPECT_THAT(verdict_of(throttled, kShare), HasSubstr("7 of 50 requests"));
  EXPECT_THAT(verdict_of(waited(Stall::kMemory, milliseconds(300)), kShare),
              HasSubstr("all of 128 MiB is taken; raise memory="));
  const std::pair<Stall, const char*> rows[] = {
      {Stall::kPeer, "peer_patience="},
      {Stall::kOtherJob, "another job of this node"},
      {Stall::kCacheIo, "disk"},
      {Stall::kAssemble, "together"},
      {Stall::kHandover, "ready"},
  };
  for (const auto& [stall, says] : rows) {
    EXPECT_THAT(verdict_of(waited(stall, milliseconds(300)), kShare),
                AllOf(StartsWith("waiting 30 %: "), HasSubstr(says)));
  }
  // That command knows no peers.
  EXPECT_THAT(verdict_of(waited(Stall::kPeer, milliseconds(300)), kShare),
              Not(HasSubstr("doctor")));
}

TEST(VerdictTest, SaysSoIfTheCauseIsNotAlone) {
  EpochStats stats = waited(Stall::kMemory, milliseconds(300));
  stats.stalls[Stall::kDecode] += milliseconds(200);

  EXPECT_THAT(verdict_of(stats, kShare),
              AllOf(StartsWith("waiting 50 %: memory"),
                    EndsWith("(60 % of the waiting)")));
}

}  // namespace
}  // namespace leat
