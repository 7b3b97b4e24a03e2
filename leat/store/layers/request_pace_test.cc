#include "leat/store/layers/request_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <queue>
#include <vector>

#include "leat/base/hash.h"

namespace leat::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

double seconds_of(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A server that serves `limit` requests a second with so large a burst, and
/// throttles the others; or a share of all requests, whatever their rate.
struct Service {
  double limit = 1e9;
  double burst = 1e9;
  double share = 0;
  Nanoseconds round_trip = milliseconds(20);

  bool throttles(TimePoint now) {
    if (share > 0) {
      return static_cast<double>(mix64(++drawn) % 1'000'000) < share * 1e6;
    }
    saved = std::min(burst, saved + limit * seconds_of(now - seen_at));
    seen_at = now;
    if (saved < 1) return true;
    saved -= 1;
    return false;
  }

  // Its state.
  std::uint64_t drawn = 0;
  double saved = 1e9;
  TimePoint seen_at{};
};

struct Outcome {
  double served_per_second = 0;
  double throttled_per_served = 0;
};

/// Keeps `window` requests in flight or waiting to be sent again, for so long.
Outcome run(RequestPace& pace, Service service, std::size_t window,
            TimePoint from, Nanoseconds how_long) {
  struct Event {
    TimePoint at;
    bool is_reply = false;
    TimePoint sent{};
    bool is_throttled = false;
    bool operator<(const Event& other) const { return at > other.at; }
  };
  std::priority_queue<Event> events;
  std::size_t ready = window;
  std::uint64_t served = 0;
  std::uint64_t throttled = 0;
  TimePoint now = from;
  while (now < from + how_long) {
    TimePoint turn = now;
    if (ready > 0 && (turn = pace.next_turn(now)) <= now) {
      pace.take_turn(now);
      --ready;
      const TimePoint there = now + service.round_trip / 2;
      events.push({.at = now + service.round_trip,
                   .is_reply = true,
                   .sent = now,
                   .is_throttled = service.throttles(there)});
      continue;
    }
    if (events.empty() || (ready > 0 && turn < events.top().at)) {
      now = turn;
      continue;
    }
    const Event event = events.top();
    events.pop();
    now = event.at;
    if (!event.is_reply) {
      ++ready;
      continue;
    }
    ++(event.is_throttled ? throttled : served);
    pace.heard(event.is_throttled, event.sent, now);
    if (!event.is_throttled) {
      ++ready;
    } else {
      events.push({.at = now + milliseconds(mix64(throttled) % 100)});
    }
  }
  return {static_cast<double>(served) / seconds_of(how_long),
          static_cast<double>(throttled) / static_cast<double>(served)};
}

TEST(RequestPaceTest, KeepsToALimitThatIsNotTold) {
  for (const double limit : {300., 3500.}) {
    for (const auto round_trip :
         {milliseconds(1), milliseconds(20), milliseconds(110)}) {
      for (const double burst : {2., limit / 10, limit}) {
        for (const std::size_t window : {128, 512}) {
          SCOPED_TRACE(::testing::Message()
                       << limit << "/s, " << round_trip.count()
                       << " ms, a burst of " << burst << " window " << window);
          RequestPace pace;
          const double reachable = std::min(
              limit, static_cast<double>(window) / seconds_of(round_trip));
          const Outcome outcome = run(
              pace, {.limit = limit, .burst = burst, .round_trip = round_trip},
              window, TimePoint(seconds(1)), seconds(20));
          EXPECT_GE(outcome.served_per_second, 0.93 * reachable);
          EXPECT_LE(outcome.throttled_per_served, window == 128 ? 0.06 : 0.15);
        }
      }
    }
  }
}

TEST(RequestPaceTest, HoldsNothingWhereAStoreNeverThrottles) {
  RequestPace pace;
  run(pace, {}, 128, TimePoint(seconds(1)), seconds(5));
  EXPECT_FALSE(pace.requests_per_second());
  EXPECT_TRUE(pace.episodes().empty());
  EXPECT_FALSE(pace.holds(TimePoint(seconds(6))));
}

TEST(RequestPaceTest, TellsOneEpisodeFromItsFirstCutToItsEnd) {
  using End = RequestPace::Episode::End;
  RequestPace pace;
  const TimePoint began(seconds(1));
  run(pace, {.limit = 300, .burst = 30}, 128, began, seconds(10));

  const auto before = pace.episodes();
  ASSERT_EQ(before.size(), 1u) << "however often the bound changed";
  EXPECT_LT(before[0].began - began, seconds(2));
  EXPECT_GT(before[0].throttled, 0u);
  EXPECT_LT(before[0].bound, before[0].sent);
  EXPECT_LE(before[0].least, before[0].bound);
  EXPECT_EQ(before[0].last, pace.requests_per_second());
  EXPECT_EQ(before[0].end, End::kNotYet);

  // 1 ms away, 128 at once are more than any store bears.
  run(pace, {.round_trip = milliseconds(1)}, 128, began + seconds(10),
      seconds(8));

  ASSERT_FALSE(pace.requests_per_second());
  const auto after = pace.episodes();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].end, End::kNoLimit);
  EXPECT_GT(after[0].ended, began + seconds(10));
  EXPECT_GT(after[0].last, before[0].last);
}

TEST(RequestPaceTest, AnEpisodeEndsAfterACalmMinute) {
  RequestPace pace;
  const TimePoint began(seconds(1));
  run(pace, {.limit = 300, .burst = 30}, 128, began, seconds(10));

  // Slower than the bound: it is not known what the store would bear.
  run(pace, {}, 1, began + seconds(10), seconds(80));

  ASSERT_EQ(pace.episodes().size(), 1u);
  EXPECT_EQ(pace.episodes()[0].end, RequestPace::Episode::End::kCalm);
}

TEST(RequestPaceTest, AnEpisodeEndsWhereSlowingDownDoesNotHelp) {
  RequestPace pace;
  run(pace, {.share = 0.4}, 128, TimePoint(seconds(1)), seconds(20));

  ASSERT_FALSE(pace.episodes().empty());
  EXPECT_EQ(pace.episodes()[0].end, RequestPace::Episode::End::kNoHelp);
}

TEST(RequestPaceTest, DoesNotSlowDownWhereThatWouldNotHelp) {
  for (const double share : {0.01, 0.1, 0.5}) {
    SCOPED_TRACE(share);
    RequestPace
        none;  // A bound of no effect: what the same window reaches without.
    RequestPace pace;
    Service service{.share = share};
    const double all = 128 / (0.020 + share * 0.050) * (1 - share);
    const Outcome outcome =
        run(pace, service, 128, TimePoint(seconds(1)), seconds(60));
    EXPECT_GE(outcome.served_per_second, 0.85 * all);
  }
}

TEST(RequestPaceTest, IsAtFullSpeedSoonAfterALimitWasLifted) {
  RequestPace pace;
  const TimePoint began(seconds(1));
  run(pace, {.limit = 300, .burst = 30}, 128, began, seconds(10));
  ASSERT_TRUE(pace.requests_per_second());

  const Outcome first = run(pace, {}, 128, began + seconds(10), seconds(6));
  const Outcome later = run(pace, {}, 128, began + seconds(16), seconds(2));

  EXPECT_GE(first.served_per_second, 350);
  EXPECT_GE(later.served_per_second, 0.9 * 128 / 0.020);
}

TEST(RequestPaceTest, ARoundTripCutsOnce) {
  RequestPace pace;
  const TimePoint sent(seconds(1));
  for (int i = 0; i < 100; ++i) {
    pace.heard(i % 2 == 0, sent, sent + milliseconds(100));
  }
  const auto once = pace.requests_per_second();
  for (int i = 0; i < 100; ++i) {
    pace.heard(true, sent, sent + milliseconds(120));
  }

  ASSERT_TRUE(once);
  EXPECT_EQ(pace.requests_per_second(), once);
}

}  // namespace
}  // namespace leat::testing
