#include "leat/store/layers/request_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/hash.h"

namespace leat::testing {
namespace {

using std::chrono::microseconds;
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

std::string scratch_folder() {
  std::string path = ::testing::TempDir() + "/leat-pace-XXXXXX";
  return ::mkdtemp(path.data());
}

/// A process of the node.
struct Rank {
  RequestPace& pace;
  Nanoseconds step{};     ///< If so, asks for a batch and trains on it in turn.
  std::size_t ready = 0;  ///< Requests that may be sent.
  std::size_t served = 0;
  std::optional<TimePoint> turn = std::nullopt;

  /// When it sends the next one.
  TimePoint next(TimePoint now) {
    if (ready == 0) return TimePoint::max();
    if (!turn || !pace.has_turns()) turn = pace.take_turn(now);
    return *turn;
  }
};

/// Each rank keeps `window` requests in flight or waiting to be sent again, for
/// so long. A rank that trains asks for a batch of so many.
Outcome run(std::span<Rank> ranks, Service service, std::size_t window,
            TimePoint from, Nanoseconds how_long) {
  struct Event {
    TimePoint at;
    Rank* rank = nullptr;
    bool is_reply = false;
    TimePoint sent{};
    bool is_throttled = false;
    std::size_t ready = 1;
    bool operator<(const Event& other) const { return at > other.at; }
  };
  std::priority_queue<Event> events;
  for (Rank& rank : ranks) rank.ready = window;
  std::uint64_t served = 0;
  std::uint64_t throttled = 0;
  TimePoint now = from;
  while (now < from + how_long) {
    Rank* first = nullptr;
    TimePoint turn = TimePoint::max();
    for (Rank& rank : ranks) {
      if (const TimePoint next = rank.next(now); next < turn) {
        turn = next;
        first = &rank;
      }
    }
    if (turn <= now) {
      --first->ready;
      first->turn.reset();
      const TimePoint there = now + service.round_trip / 2;
      events.push({.at = now + service.round_trip,
                   .rank = first,
                   .is_reply = true,
                   .sent = now,
                   .is_throttled = service.throttles(there)});
      continue;
    }
    if (events.empty() || turn < events.top().at) {
      now = turn;
      continue;
    }
    const Event event = events.top();
    events.pop();
    now = event.at;
    if (!event.is_reply) {
      event.rank->ready += event.ready;
      continue;
    }
    ++(event.is_throttled ? throttled : served);
    event.rank->pace.heard(event.is_throttled, event.sent, now);
    if (!event.is_throttled) {
      Rank& rank = *event.rank;
      const bool has_batch = ++rank.served % window == 0;
      if (rank.step == Nanoseconds{})
        ++rank.ready;
      else if (has_batch) {
        events.push({.at = now + rank.step, .rank = &rank, .ready = window});
      }
    } else {
      events.push({.at = now + milliseconds(mix64(throttled) % 100),
                   .rank = event.rank});
    }
  }
  return {static_cast<double>(served) / seconds_of(how_long),
          static_cast<double>(throttled) / static_cast<double>(served)};
}

Outcome run(RequestPace& pace, const Service& service, std::size_t window,
            TimePoint from, Nanoseconds how_long) {
  std::vector<Rank> alone = {{.pace = pace}};
  return run(alone, service, window, from, how_long);
}

TEST(RequestPaceTest, KeepsToALimitThatIsNotTold) {
  for (const double limit : {300., 3500.}) {
    for (const auto round_trip :
         {milliseconds(1), milliseconds(20), milliseconds(110)}) {
      for (const double burst : {2., limit}) {
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

TEST(RequestPaceTest, ASlowStartFindsALimitAtFewRefusals) {
  for (const auto round_trip : {milliseconds(1), milliseconds(5)}) {
    for (const std::size_t window : {32, 128, 512}) {
      SCOPED_TRACE(::testing::Message()
                   << round_trip.count() << " ms, window " << window);
      RequestPace pace("", "the service");
      const Service service{
          .limit = 300, .burst = 30, .round_trip = round_trip};
      const TimePoint began(seconds(1));

      const Outcome first = run(pace, service, window, began, seconds(2));
      EXPECT_GE(first.served_per_second, 0.93 * 300);
      EXPECT_LE(first.throttled_per_served, 0.15);

      RequestPace again("", "the service");
      const Outcome whole = run(again, service, window, began, seconds(20));
      EXPECT_GE(whole.served_per_second, 0.97 * 300);
      EXPECT_LE(whole.throttled_per_served, 0.05);
    }
  }
}

TEST(RequestPaceTest, RanksShareTheSlowStart) {
  const std::string folder = scratch_folder();
  std::vector<std::unique_ptr<RequestPace>> paces;
  std::vector<Rank> ranks;
  for (int i = 0; i < 8; ++i) {
    paces.push_back(std::make_unique<RequestPace>(folder, "the service"));
    ranks.push_back({.pace = *paces.back()});
  }

  const Outcome outcome =
      run(ranks, {.limit = 500, .burst = 50, .round_trip = milliseconds(5)}, 64,
          TimePoint(seconds(1)), seconds(2));

  EXPECT_LE(outcome.throttled_per_served, 0.15);
}

TEST(RequestPaceTest, ASlowStartCostsFewRoundTrips) {
  RequestPace pace("", "the service");
  const TimePoint began(seconds(1));

  const Outcome first = run(pace, {}, 512, began, seconds(1));

  EXPECT_GE(first.served_per_second, (1 - 6 * 0.020) * 512 / 0.020);
  EXPECT_FALSE(pace.requests_per_second()) << "nothing was throttled";
  EXPECT_FALSE(pace.holds(began + seconds(1)));
  EXPECT_TRUE(pace.episodes().empty());
  EXPECT_FALSE(pace.has_turns());
}

TEST(RequestPaceTest, ASlowStartDoublesUnlessRoundTripsBecomeLonger) {
  RequestPace pace("", "the service");
  TimePoint now(seconds(1));
  const auto between = [&](Nanoseconds round_trip) {
    TimePoint first;
    TimePoint last;
    for (int i = 0; i < 100; ++i) last = pace.take_turn(now);
    first = std::exchange(last, pace.take_turn(now));
    const Nanoseconds apart = last - first;
    for (int i = 0; i < 8; ++i) pace.heard(false, last, last + round_trip);
    now = last + round_trip;
    return apart;
  };

  EXPECT_EQ(between(milliseconds(20)), milliseconds(1));
  EXPECT_EQ(between(milliseconds(20)), microseconds(500));
  EXPECT_EQ(between(milliseconds(50)), microseconds(250));
  EXPECT_EQ(between(milliseconds(50)), microseconds(250));
  EXPECT_EQ(between(milliseconds(50)), microseconds(125));
}

TEST(RequestPaceTest, RanksThatShareItFindTheLimitTogether) {
  const std::string folder = scratch_folder();
  for (const std::size_t count : {2, 8}) {
    SCOPED_TRACE(count);
    std::vector<std::unique_ptr<RequestPace>> paces;
    std::vector<Rank> ranks;
    for (std::size_t i = 0; i < count; ++i) {
      paces.push_back(std::make_unique<RequestPace>(folder, "the service"));
      ASSERT_TRUE(paces.back()->is_shared());
      ranks.push_back({.pace = *paces.back()});
    }
    const Service service{
        .limit = 500, .burst = 50, .round_trip = milliseconds(5)};
    const TimePoint began(seconds(1));

    run(ranks, service, 128 / count, began, seconds(2));
    const Outcome outcome =
        run(ranks, service, 128 / count, began + seconds(2), seconds(20));

    EXPECT_GE(outcome.served_per_second, 0.95 * 500);
    EXPECT_LE(outcome.throttled_per_served, 0.05);
    // Each tells its user.
    for (const auto& pace : paces) {
      EXPECT_EQ(pace->episodes().size(), 1u);
      EXPECT_EQ(pace->requests_per_second(), paces[0]->requests_per_second());
    }
  }
}

TEST(RequestPaceTest, OneThatComesLaterKeepsToTheBoundAndTellsIt) {
  const std::string folder = scratch_folder();
  RequestPace first(folder, "the service");
  run(first, {.limit = 300, .burst = 30}, 128, TimePoint(seconds(1)),
      seconds(10));
  ASSERT_TRUE(first.requests_per_second());

  RequestPace later(folder, "the service");
  const RequestPace elsewhere(folder, "another service");

  EXPECT_EQ(later.requests_per_second(), first.requests_per_second());
  EXPECT_EQ(later.episodes().size(), 1u);
  EXPECT_FALSE(elsewhere.requests_per_second());
  EXPECT_TRUE(elsewhere.episodes().empty());
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

TEST(RequestPaceTest, DoesNotTakeWhatTrainingAsksForForWhatTheStoreBears) {
  constexpr std::size_t kBatch = 8;
  for (const Nanoseconds step :
       {milliseconds(40), milliseconds(100), milliseconds(400)}) {
    for (const double share : {0.05, 0.2, 0.5}) {
      SCOPED_TRACE(::testing::Message() << share << " throttled, a batch in "
                                        << seconds_of(step) << " s");
      RequestPace pace;
      std::vector<Rank> training = {{.pace = pace, .step = step}};
      const Service service{.share = share};
      const double wait = 0.020 + share / (1 - share) * 0.050;
      const TimePoint began(seconds(1));

      const Outcome trained =
          run(training, service, kBatch, began, seconds(120));
      const Outcome full =
          run(pace, service, kBatch, began + seconds(120), seconds(10));

      EXPECT_GE(trained.served_per_second,
                0.3 * kBatch / (seconds_of(step) + wait));
      EXPECT_GE(full.served_per_second,
                0.85 * kBatch / (0.020 + share * 0.050) * (1 - share));
    }
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
